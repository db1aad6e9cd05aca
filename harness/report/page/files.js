"use strict";
// Files of what the page shows: drawings as SVG and PNG, tables as CSV, Markdown and LaTeX.
const files = (() => {
  const INCHES = 3.3, DPI = 300; // of a drawing: the column of a paper
  const STYLE = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
    "font-weight", "text-anchor", "paint-order"]; // what the style sheet sets in drawings

  function save(name, content, type) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name.replace(/[^\p{L}\p{N}.+]+/gu, "-").replace(/^[-.]+|-+(?=\.)/g, "");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  // ---- drawings ------------------------------------------------------------------------------

  // A copy whose style is in attributes, so that it needs no style sheet.
  function styled(node) {
    const copy = node.cloneNode(false);
    if (copy.nodeType !== Node.ELEMENT_NODE) return copy;
    const style = getComputedStyle(node);
    for (const name of STYLE) copy.setAttribute(name, style.getPropertyValue(name));
    copy.removeAttribute("class");
    copy.append(...[...node.childNodes].map(styled));
    return copy;
  }

  // The drawing with its legend below, as the text of an SVG file; light in every theme.
  function svgText(drawing, legend) {
    const root = document.documentElement, theme = root.dataset.theme;
    root.dataset.theme = "light";
    const { width, height } = drawing.viewBox.baseVal;
    const copy = styled(drawing);
    const add = (tag, attributes) => {
      const node = document.createElementNS(copy.namespaceURI, tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      return node;
    };
    legend.forEach((item, place) => {
      const x = 8 + (place % 2) * (width / 2), y = height + 6 + 16 * Math.floor(place / 2);
      const swatch = add("g", { transform: `translate(${x} ${y})` });
      swatch.append(...[...item.firstElementChild.childNodes].map(styled));
      const text = add("text", { x: x + 32, y: y + 10, "font-size": "11px", fill: "#000" });
      text.textContent = item.textContent;
      copy.append(swatch, text);
    });
    root.dataset.theme = theme;
    const whole = height + (legend.length ? 12 : 0) + 16 * Math.ceil(legend.length / 2);
    copy.prepend(add("rect", { width, height: whole, fill: "#fff" }));
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${whole}`,
      width: `${INCHES}in`, height: `${(INCHES * whole / width).toFixed(3)}in`,
      "font-family": "DejaVu Sans, Arial, sans-serif" })) copy.setAttribute(name, value);
    return { text: new XMLSerializer().serializeToString(copy), ratio: whole / width };
  }

  function saveDrawing(form, name, drawing, legend) {
    const { text, ratio } = svgText(drawing, legend);
    if (form === "SVG") return save(`${name}.svg`, text, "image/svg+xml");
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(INCHES * DPI);
      canvas.height = Math.round(INCHES * DPI * ratio);
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, blob));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    return undefined;
  }

  // ---- tables --------------------------------------------------------------------------------

  // The same rules as in harness/escape.py, which says why.
  const csvCell = (text) =>
    (/^[=+\-@]/.test(text.trimStart().slice(0, 1).normalize("NFKC")) ? `'${text}` : text);

  const markdown = (text) => text.replace(new RegExp("[\\\\`*\\[\\]<>|~#$]|&(?=#?\\w+;)"
    + "|(?<![\\p{L}\\p{N}])_+|_+(?![\\p{L}\\p{N}])"
    + "|(?<=[A-Za-z]):(?=//)|(?<=[Ww]{3})\\.", "gu"),
  (signs) => [...signs].map((sign) => `\\${sign}`).join(""));

  const LATEX = { "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}",
    "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", '"': "{\\char34}",
    "`": "\\textasciigrave{}", "'": "\\textquotesingle{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "†": "\\textdagger{}", "‡": "\\textdaggerdbl{}", "—": "\\textemdash{}", "–": "--" };
  const ACCENTS = { "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=",
    "\u0306": "u", "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v",
    "\u0327": "c", "\u0328": "k" };
  function latex(text) {
    const set = (sign) => {
      if (LATEX[sign]) return LATEX[sign];
      if ("#$%&_{}".includes(sign)) return `\\${sign}`;
      if (sign <= "\x7f") return sign;
      const [base, accent, more] = sign.normalize("NFKD");
      return base <= "\x7f" && ACCENTS[accent] && !more ? `\\${ACCENTS[accent]}{${base}}`
        : `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    };
    return [...text.replace(/([-,])(?=\1)/g, "$1\u0000")].map((sign) =>
      (sign === "\u0000" ? "{}" : set(sign))).join("");
  }

  // A table is {title, heads, align, rows}; a cell is {text, small, bold, number, ends}.
  const FORMS = {
    CSV({ heads, rows }) {
      const wide = heads.map((_, place) => rows.some((row) => row[place].ends));
      const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const lines = [heads.flatMap((head, place) =>
        (wide[place] ? [head, `${head} low`, `${head} high`] : [head]).map(csvCell))];
      for (const row of rows) lines.push(row.flatMap((cell, place) => {
        const value = cell.number === undefined ? csvCell(whole(cell)) : String(cell.number ?? "");
        return wide[place] ? [value, ...(cell.ends || ["", ""]).map(String)] : [value];
      }));
      return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
    },
    Markdown({ heads, align, rows }) {
      const line = (cells) => `| ${cells.join(" | ")} |\n`;
      const bold = (cell) => (cell.bold ? `**${markdown(cell.text)}**` : markdown(cell.text));
      return line(heads.map(markdown)) + line(align.map((one) => (one === "r" ? "---:" : "---")))
        + rows.map((row) => line(row.map((cell) =>
          bold(cell) + (cell.small ? ` ${markdown(cell.small)}` : "")))).join("");
    },
    LaTeX({ title, heads, align, rows }) {
      const line = (cells) => `${cells.join(" & ")} \\\\\n`;
      const bold = (cell) => (cell.bold ? `\\textbf{${latex(cell.text)}}` : latex(cell.text));
      return `% ${title}\n% Needs \\usepackage{booktabs}.\n`
        + `\\begin{tabular}{@{}${align.join("")}@{}}\n\\toprule\n${line(heads.map(latex))}\\midrule\n`
        + rows.map((row) => line(row.map((cell) =>
          bold(cell) + (cell.small ? ` {\\scriptsize ${latex(cell.small)}}` : "")))).join("")
        + "\\bottomrule\n\\end{tabular}\n";
    },
  };
  const ENDINGS = { CSV: "csv", Markdown: "md", LaTeX: "tex" };
  const whole = (cell) => [cell.text, cell.small].filter(Boolean).join(" ");

  function saveTable(form, table) {
    save(`${table.title}.${ENDINGS[form]}`, FORMS[form](table), "text/plain");
  }

  // The text of a drawn cell, its bracket, and whether it is bold; controls and drawings are left out.
  function cellOf(node) {
    const texts = (one) => (one.nodeType === Node.TEXT_NODE ? [one.data.trim()]
      : one.tagName === "svg" || one.tagName === "SMALL" ? []
      : one.classList.contains("clip") ? [one.title]
      : one.classList.contains("options") ? [`(${one.textContent})`]
      : [...one.childNodes].flatMap(texts));
    const small = node.querySelector("small");
    return { text: texts(node).filter(Boolean).join(" "), small: small ? small.textContent.trim() : "",
      bold: node.querySelector("b") !== null };
  }

  return { saveDrawing, saveTable, cellOf, drawings: ["SVG", "PNG"], tables: Object.keys(FORMS) };
})();
