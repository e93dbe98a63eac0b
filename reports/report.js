// Adds what needs a script: buttons that copy a command. Without it the page reads the same.
for (const block of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = block.dataset.copy;
  button.addEventListener("click", () => {
    navigator.clipboard?.writeText(block.querySelector("code").textContent).then(() => {
      button.textContent = "✓";
      setTimeout(() => { button.textContent = block.dataset.copy; }, 1500);
    });
  });
  block.append(button);
}
