"""The stages that run on a device: each is a module with ``run(bench)``, made of steps with measures."""
