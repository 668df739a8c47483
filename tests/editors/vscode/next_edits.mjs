// A file in which a name is changed, and what is drawn of the next edit.

/** More lines than fit on the screen, and than the server takes for an edit of somebody. */
const MIDDLE = "    b += 1\n".repeat(60);
const NAMES = "cdefghijklmnopq";
export const SHOWN = { struck: "a", comes: ["first"], marks: [2] };
export const NOTHING = { struck: "", comes: [], marks: [] };

export class NextEdits {
  #names = 0;

  constructor(editor) {
    this.editor = editor;
  }

  /** In an editor whose clipboard may then be used. */
  static async in(editor) {
    await editor.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    return new NextEdits(editor);
  }

  /** Write the file anew and give the parameter another name; what the file is then, and later. */
  async rename() {
    const { editor } = this;
    // Others every time, for what was proposed for a line is not proposed for it again.
    const name = NAMES[this.#names];
    this.#names += 1;
    const text = `def total(a, b):
    ${name} = a
${MIDDLE}    return a + b + ${name}
`;
    // Pasted at once: what is typed counts as an edit of each line.
    await editor.page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text);
    await editor.press("Control+a", "Control+v");
    // It comes a moment later, to where the focus is then; its end is in sight.
    await editor.until(() => editor.text(), new RegExp(`return a \\+ b \\+ ${name}\\s*$`));
    await editor.goto(1, 11);
    await editor.press("Shift+ArrowRight");
    await editor.type("first");
    const renamed = text.replace("total(a,", "total(first,");
    const once = renamed.replace("= a", "= first");
    return { renamed, once, twice: once.replace("return a", "return first") };
  }

  /** What is drawn: the old text, what comes in its place or as a hint, the lines. */
  drawn() {
    return this.editor.page.evaluate(() => {
      const page = document.querySelector(".editor-instance");
      const comes = [];
      let struck = "";
      for (const span of page.querySelectorAll(".view-line span span")) {
        const { content } = getComputedStyle(span, "::after");
        const isSomething = content !== "none" && content !== "normal";
        if (isSomething) comes.push(content.slice(1, -1).replaceAll("\u00a0", " "));
        if (getComputedStyle(span).textDecorationLine === "line-through")
          struck += span.textContent;
      }
      // Line numbers stand in the same places as the marks.
      const top = (node) => Math.round(node.getBoundingClientRect().top);
      const lines = new Map(
        [...page.querySelectorAll(".line-numbers")].map((node) => [top(node), node.textContent]),
      );
      const marks = [...page.querySelectorAll(".glyph-margin-widgets .cgmr")]
        .filter((mark) => getComputedStyle(mark).backgroundImage.includes("next-edit-dark.svg"))
        .map((mark) => Number(lines.get(top(mark))));
      return { struck, comes, marks };
    });
  }

  async untilDrawn(expected) {
    await this.editor.until(async () => JSON.stringify(await this.drawn()), JSON.stringify(expected));
  }

  /** Wait until the cursor is there, as the status bar says. */
  async untilAt(line, column) {
    const item = this.editor.page.locator('.statusbar-item[id="status.editor.selection"]');
    await this.editor.until(() => item.textContent(), `Ln ${line}, Col ${column}`);
  }
}
