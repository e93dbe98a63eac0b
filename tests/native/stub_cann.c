/* Functions of the stub CANN that give something back; all others only return a number (see stub_cann.py).
 *
 * The environment says how it behaves:
 *   STUB_CANN_DEVICES=2              how many NPUs there are (default 0)
 *   STUB_CANN_SOC=Ascend910B3        their name
 *   STUB_CANN_RESULT_aclInit=500000  what a function returns in place of 0
 *   STUB_CANN_MESSAGE=text           what aclGetRecentErrMsg tells
 *   STUB_CANN_TRACE=1                each call is named on stderr
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CONTEXT = 107002, OUT_OF_MEMORY = 207001 };

static int device = -1;

static int called(const char *function) {
    char name[160];
    const char *result;
    if (getenv("STUB_CANN_TRACE"))
        fprintf(stderr, "[stub CANN] %s\n", function);
    snprintf(name, sizeof name, "STUB_CANN_RESULT_%s", function);
    result = getenv(name);
    return result ? atoi(result) : 0;
}
#define CALLED called(__func__)

static int devices(void) {
    const char *count = getenv("STUB_CANN_DEVICES");
    return count ? atoi(count) : 0;
}

static int allocated(void **memory, size_t size) {
    return posix_memalign(memory, 512, size ? size : 512) ? OUT_OF_MEMORY : 0;
}

#ifdef STUB_ascend_hal
int drvGetDevNum(unsigned *count) { *count = devices(); return CALLED; }
#endif

#ifdef STUB_profapi
unsigned long MsprofSysCycleTime(void) { return CALLED; }
#endif

#ifdef STUB_acl_op_compiler
void *aclopCreateAttr(void) { CALLED; return malloc(64); }
size_t aclGetCompileoptSize(int option) { (void)option; CALLED; return 8; }
int aclGetCompileopt(int option, char *value, size_t size) {
    (void)option;
    snprintf(value, size, "disable");
    return CALLED;
}
#endif

#ifdef STUB_ascendcl
struct version { char whole[128], major[64], minor[64], release[64], patch[64], reserved[128]; };

int aclsysGetCANNVersion(int package, struct version *version) {
    (void)package;
    memset(version, 0, sizeof *version);
    strcpy(version->whole, "9.1.0");
    strcpy(version->major, "9");
    strcpy(version->minor, "1");
    strcpy(version->release, "0");
    return CALLED;
}
int aclsysGetVersionStr(char *package, char *version) { (void)package; strcpy(version, "9.1.0"); return CALLED; }

const char *aclrtGetSocName(void) {
    const char *soc = getenv("STUB_CANN_SOC");
    CALLED;
    return soc ? soc : "Ascend910B3";
}
const char *aclGetRecentErrMsg(void) { CALLED; return getenv("STUB_CANN_MESSAGE"); }
void aclAppLog(int level, const char *function, const char *file, unsigned line, const char *format, ...) {
    (void)level, (void)function, (void)file, (void)line, (void)format;
}

int aclrtGetDeviceCount(unsigned *count) { *count = devices(); return CALLED; }
int aclrtGetDevice(int *current) { *current = device; return device < 0 ? NO_CONTEXT : CALLED; }
int aclrtSetDevice(int wanted) {
    int result = CALLED;
    if (!result)
        device = wanted;
    return result;
}
int aclrtGetCurrentContext(void **context) {
    static int only;
    *context = device < 0 ? NULL : &only;
    return device < 0 ? NO_CONTEXT : CALLED;
}
int aclrtGetPrimaryCtxState(int wanted, unsigned *flags, int *active) {
    (void)wanted, (void)flags;
    *active = device >= 0;
    return CALLED;
}

int aclrtGetSysParamOpt(int option, long *value) { (void)option; *value = 0; return CALLED; }
int aclrtGetDeviceInfo(unsigned wanted, int what, long *value) { (void)wanted, (void)what; *value = 20; return CALLED; }
int aclGetDeviceCapability(unsigned wanted, int what, long *value) {
    (void)wanted, (void)what;
    *value = 20;
    return CALLED;
}
int aclrtGetDeviceResLimit(int wanted, int kind, unsigned *value) { (void)wanted, (void)kind; *value = 20; return CALLED; }
int aclrtGetStreamResLimit(void *stream, int kind, unsigned *value) {
    (void)stream, (void)kind;
    *value = 20;
    return CALLED;
}
int aclrtGetResInCurrentThread(int kind, unsigned *value) { (void)kind; *value = 20; return CALLED; }
int aclrtGetDeviceUtilizationRate(int wanted, int *rates) { (void)wanted; rates[0] = 37; return CALLED; }

int aclrtGetMemInfo(int kind, size_t *unused, size_t *total) {
    (void)kind;
    *total = (size_t)64 << 30;
    *unused = (size_t)61 << 30;
    return CALLED;
}
int aclrtMalloc(void **memory, size_t size, int policy) {
    int result = CALLED;
    (void)policy;
    return result ? result : allocated(memory, size);
}
int aclrtMallocAlign32(void **memory, size_t size, int policy) {
    int result = CALLED;
    (void)policy;
    return result ? result : allocated(memory, size);
}
int aclrtMallocHost(void **memory, size_t size) {
    int result = CALLED;
    return result ? result : allocated(memory, size);
}
int aclrtFree(void *memory) { free(memory); return CALLED; }
int aclrtFreeHost(void *memory) { free(memory); return CALLED; }
int aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int kind) {
    (void)room, (void)kind;
    memcpy(to, from, size);
    return CALLED;
}
int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int kind, void *stream) {
    (void)room, (void)kind, (void)stream;
    memcpy(to, from, size);
    return CALLED;
}
int aclrtMemset(void *memory, size_t room, int value, size_t size) {
    (void)room;
    memset(memory, value, size);
    return CALLED;
}

int aclrtCreateStream(void **stream) { *stream = malloc(64); return CALLED; }
int aclrtCreateStreamWithConfig(void **stream, unsigned priority, unsigned flags) {
    (void)priority, (void)flags;
    *stream = malloc(64);
    return CALLED;
}
int aclrtCreateEventExWithFlag(void **event, unsigned flags) { (void)flags; *event = malloc(64); return CALLED; }
int aclrtStreamGetId(void *stream, int *id) { (void)stream; *id = 1; return CALLED; }
int aclrtStreamQuery(void *stream, int *state) { (void)stream; *state = 0; return CALLED; }
int aclrtQueryEventStatus(void *event, int *state) { (void)event; *state = 1; return CALLED; }
int aclrtPeekAtLastError(int level) { (void)level; return CALLED; }
int aclrtGetLastError(int level) { (void)level; return CALLED; }
void *aclCreateDataBuffer(void *data, size_t size) { (void)data, (void)size; CALLED; return malloc(64); }
void *aclCreateTensorDesc(int type, int dimensions, const void *sizes, int format) {
    (void)type, (void)dimensions, (void)sizes, (void)format;
    CALLED;
    return malloc(64);
}
#endif
