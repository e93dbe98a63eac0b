// Adds what needs a script: copy buttons, filters, a permanent switch of language. Without it the page reads the same.
"use strict";
{
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const run = JSON.parse($("run").textContent);
  for (const one of document.querySelectorAll(".js")) one.hidden = false;

  // language: the switch itself works by style alone; this tells it to tools, titles and options
  const radios = [...document.querySelectorAll('input[name="lang"]')];
  const language = () => (radios.find((one) => one.checked) || radios[0]).value;
  const short = () => language().slice(0, 2);
  const speak = () => {
    root.lang = language();
    for (const one of document.querySelectorAll("[data-en]")) one.textContent = one.getAttribute(`data-${language()}`);
  };
  for (const radio of radios) radio.addEventListener("change", () => { speak(); if ($("filter")) apply(true); });

  // copying
  const spoken = (id) => {
    const parts = $(id).content;
    const own = [...parts.querySelectorAll("[lang]")].find((one) => one.lang === language());
    return (own || parts).textContent;
  };
  const copy = async (text, button, node) => {
    try {
      await navigator.clipboard.writeText(text);
      const before = [...button.childNodes];
      button.textContent = spoken("t-copied");
      setTimeout(() => { button.replaceChildren(...before); }, 1500);
    } catch {
      if (!node) { // no clipboard on file: pages of some browsers: show the text, selected
        node = document.createElement("pre");
        node.textContent = text;
        button.after(node);
      }
      getSelection().selectAllChildren(node);
    }
  };
  const button = (id) => $(id).content.firstElementChild.cloneNode(true);
  for (const block of document.querySelectorAll("pre.command")) {
    const code = block.firstElementChild, one = button("t-copy");
    one.addEventListener("click", () => copy(code.textContent, one, code));
    block.append(one);
  }

  // Markdown; what hosts say is never markup in it
  const plain = (text) => text.replace(/[\\`*_[\]<>#|~@!]/g, "\\$&").replace(/\s+/g, " ");
  const said = (texts) => (texts ? plain(texts[short()] ?? Object.values(texts)[0] ?? "") : "");
  const fence = (text) => {
    let marks = "```";
    while (text.includes(marks)) marks += "`";
    return `\n${marks}\n${text}\n${marks}\n`;
  };
  const word = (id) => {
    const node = [...document.querySelectorAll(`${id} [lang]`)].find((one) => one.lang === language());
    return node ? node.textContent : "";
  };
  const line = (f) => `${f.severity ?? f.verdict}: ${said(f.title)} (${plain(f.check)}${f.subject === "host" ? "" : ` ${plain(f.subject)}`})`;
  const markdown = (f) => {
    let text = `### ${line(f)}\n\n`;
    if (f.found) text += `- ✗ ${said(f.found)}\n`;
    if (f.expected) text += `- ✓ ${said(f.expected)}\n`;
    if (f.why) text += `\n${said(f.why)}\n`;
    f.remedy.forEach((step, i) => {
      text += `\n${i + 1}. ${said(step.text)}${step.effect === "none" ? "" : ` (${step.effect})`}\n${step.command ? fence(step.command) : ""}`;
    });
    for (const e of f.evidence) text += `\n\`${e.source.replaceAll("`", "'")}\`\n${fence(e.text)}`;
    return text;
  };
  for (const card of document.querySelectorAll("article[data-n]")) {
    const one = button("t-finding");
    one.addEventListener("click", () => copy(markdown(run.findings[card.dataset.n]), one));
    card.querySelector(".where").append(one);
  }
  $("copy-summary").addEventListener("click", (event) => {
    const fails = run.findings.filter((f) => f.verdict === "fail" && !f.because);
    const head = document.title.replace(/ · [^·]*$/, "");
    const host = [run.host.hostname, run.host.arch, run.started, `ascend-doctor ${run.tool.version}`].filter(Boolean).map(plain).join(" · ");
    copy(`## ${plain(head)}\n\n${host}\n\n${fails.map((f) => `- ${line(f)}${f.found ? `: ${said(f.found)}` : ""}`).join("\n")}\n`, event.currentTarget);
  });
  $("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([$("run").textContent], { type: "application/json" }));
    link.download = "run.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // what the fragment names is opened; a fragment that begins with ? is the state of the filter
  const reveal = () => {
    let node = null;
    try { node = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no place here */ }
    for (let at = node; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const inner = node && node.matches("article") && node.querySelector(":scope > details");
    if (inner) inner.open = true;
    if (node) node.scrollIntoView();
  };

  let apply = () => {};
  if ($("filter")) {
    $("filter").open = innerWidth >= 1100; // beside the findings, not before them
    const items = [...document.querySelectorAll("[data-s]")];
    const boxes = [...document.querySelectorAll("#filter input[type=checkbox]")];
    const text = $("f-text"), subject = $("f-subject");
    const weight = (item) => item.dataset.d.split("\n").length;
    const all = items.reduce((sum, item) => sum + weight(item), 0);
    for (const slot of document.querySelectorAll("#f-count .all")) slot.textContent = all;
    const chosen = (name) => new Set(boxes.filter((box) => box.name === name && box.checked).map((box) => box.value));
    apply = (keep) => {
      const marks = chosen("s"), areas = chosen("a"), wanted = text.value.trim().toLowerCase();
      let shown = 0;
      for (const item of items) {
        const { s, a, d } = item.dataset;
        const fits = marks.has(s) && areas.has(a) && (!subject.value || d.split("\n").includes(subject.value))
          && (!wanted || item.textContent.toLowerCase().includes(wanted));
        item.classList.toggle("out", !fits);
        if (fits) shown += subject.value ? 1 : weight(item);
      }
      for (const item of items) item.hidden = item.classList.contains("out") && !item.querySelector("[data-s]:not(.out)");
      for (const node of document.querySelectorAll("article.finding:not([data-s])")) node.hidden = !node.querySelector("[data-s]:not(.out)");
      for (const node of document.querySelectorAll("#passed details, #skipped details")) node.hidden = !node.querySelector("[data-s]:not(.out)");
      for (const slot of document.querySelectorAll("#f-count .shown")) slot.textContent = shown;
      $("f-none").hidden = shown > 0;
      if (keep) return;
      const state = new URLSearchParams();
      for (const name of ["s", "a"]) {
        const left = boxes.filter((box) => box.name === name && !box.checked).map((box) => box.value);
        if (left.length) state.set(name, left.join(","));
      }
      if (subject.value) state.set("d", subject.value);
      if (wanted) state.set("q", text.value.trim());
      history.replaceState(null, "", `${state}` ? `#?${state}` : location.pathname + location.search);
    };
    const restore = () => {
      const state = new URLSearchParams(location.hash.slice(2));
      for (const box of boxes) box.checked = !(state.get(box.name) || "").split(",").includes(box.value);
      text.value = state.get("q") || "";
      subject.value = state.get("d") || "";
      apply(true);
    };
    for (const input of [...boxes, text, subject]) input.addEventListener("input", () => apply(false));
    $("f-reset").addEventListener("click", () => {
      for (const box of boxes) box.checked = true;
      text.value = subject.value = "";
      apply(false);
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      text.focus();
    });
    addEventListener("hashchange", () => { if (location.hash.startsWith("#?")) restore(); });
    if (location.hash.startsWith("#?")) restore();
  }
  addEventListener("hashchange", reveal);
  speak();
  if (location.hash.length > 1 && !location.hash.startsWith("#?")) reveal();

  // on paper everything is open
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
}
