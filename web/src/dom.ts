// Elements without a framework. Text always goes in as text, so nothing that a run is called can become markup.

type Child = Node | string | null | undefined | false;

export function el(tag: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

export function table(caption: string, head: string[], rows: (Node | string)[][]): HTMLElement {
  const body = rows.map((cells) =>
    el("tr", {}, ...cells.map((cell, i) => (i === 0 ? el("th", { scope: "row" }, cell) : el("td", {}, cell)))),
  );
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", { class: "hidden" }, caption),
      el("thead", {}, el("tr", {}, ...head.map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...body),
    ),
  );
}

/** A table that is there for those who do not look at the chart above it. */
export function asTable(caption: string, head: string[], rows: (Node | string)[][]): HTMLElement {
  return el("details", {}, el("summary", {}, caption), table(caption, head, rows));
}
