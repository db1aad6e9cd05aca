// Draws the report from the JSON in #contents. Names are set as text and never parsed as HTML.
(() => {
  const report = JSON.parse(document.getElementById("contents").textContent);
  const { models, boards } = report;
  const view = document.getElementById("view");
  const MISSING = "—";
  const SHAPES = ["circle", "square", "triangle", "diamond", "down", "cross", "plus", "right"];
  const OFFSETS = [4, -7, 15, -18, 26, -29, 37]; // of labels below their dot
  const COLOURS = 8; // of lines; then come the same colours, dashed
  const kinds = Object.keys(report.kinds);
  const ticked = new Map(); // place of a board -> the rows whose lines are drawn

  // ---- elements ----------------------------------------------------------------------------

  function made(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(9).filter((child) => child !== null && child !== undefined));
    return node;
  }
  const el = (tag, attributes, ...children) =>
    made(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  const at = (...parts) => "#" + parts.map(encodeURIComponent).join("/");
  const boardLink = (board) => at("board", board.family, board.data, board.split);
  const boardTitle = (board) => `${board.family} on ${board.data}, split ${board.split}`;
  const modelLink = (name) => el("a", { href: at("model", name) }, name);
  const rowName = (board, row) =>
    models[row.model].name + (row.options ? ` (${row.options})` : "");

  function number(value, decimals) {
    return value.toLocaleString("en-US", {
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
    });
  }
  const shown = (column, value) =>
    value === null || value === undefined ? MISSING
    : column.decimals === null ? number(100 * value, 2)
    : number(value, column.decimals);
  const onAxis = (axis, value) =>
    value === null ? MISSING
    : axis.percent ? number(100 * value, 2)
    : short(value);
  const short = (value) =>
    Math.abs(value) >= 1000 ? number(value, 0) : String(Number(value.toPrecision(4)));

  // ---- files ---------------------------------------------------------------------------------

  const heading = () => view.querySelector("h1").textContent;
  const offers = (title, forms, save) => el("p", { class: "files" }, forms.map((form) =>
    el("button", { type: "button", "aria-label": `${title} as ${form}`, onclick: () => save(form) },
      form)));

  // A panel with its drawing and the files of it; the legends that explain it go into the files.
  function panelOf(title, node) {
    const legend = () => [node.closest("figure"), node.closest(".panels > div")].flatMap((one) =>
      [...one.querySelectorAll(one.tagName === "FIGURE" ? ":scope > .legend > li" : ".legend > li")]);
    return el("div", { class: "panel" }, node, offers(title, files.drawings, (form) =>
      files.saveDrawing(form, `${heading()} ${node.closest("figure").id.replace("figure-", "")} ${title}`,
        node, legend())));
  }

  // ---- tables that sort ----------------------------------------------------------------------

  // A column is {title, align, value(row), cell(row), descends}; rows without a value come last.
  function sortable(caption, columns, rows, options = {}) {
    const state = { by: options.by ?? null, down: options.down ?? false };
    const body = el("tbody");
    const heads = columns.map((column, place) => {
      if (!column.value) return el("th", { scope: "col", class: column.align }, column.title);
      const button = el("button", { type: "button", onclick: () => sort(place) }, column.title,
        el("span", { class: "arrow", "aria-hidden": "true" }));
      return el("th", { scope: "col", class: column.align, title: column.about }, button);
    });
    function sort(place) {
      const same = state.by === place;
      state.down = same ? !state.down : Boolean(columns[place].descends);
      state.by = place;
      draw();
    }
    function ordered() {
      const visible = rows.filter((row) => !options.keep || options.keep(row));
      if (state.by === null) return visible;
      const { value } = columns[state.by];
      const sign = state.down ? -1 : 1;
      return visible
        .map((row, place) => ({ row, place, key: value(row) }))
        .sort((a, b) => {
          const none = (a.key === null) - (b.key === null);
          if (none || a.key === null) return none || a.place - b.place;
          const order = typeof a.key === "number" ? a.key - b.key
            : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
          return sign * order || a.place - b.place;
        })
        .map(({ row }) => row);
    }
    function draw() {
      const found = ordered();
      body.replaceChildren(...found.map((row) => {
        const cells = columns.map((column, place) =>
          el(place === (options.head ?? 0) ? "th" : "td",
            { class: column.align, scope: place === (options.head ?? 0) ? "row" : null },
            column.cell(row)));
        const line = el("tr", {}, cells);
        if (options.each) options.each(row, line);
        return line;
      }));
      heads.forEach((head, place) => {
        if (!columns[place].value) return;
        const order = state.by !== place ? "none" : state.down ? "descending" : "ascending";
        head.setAttribute("aria-sort", order);
      });
      if (options.drawn) options.drawn(found);
    }
    const table = el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads)), body);
    draw();
    const scroll = el("div", { class: "scroll", tabindex: "0", role: "region",
      "aria-label": caption }, table);
    const cells = (row) => columns.map((column) => ({ ...files.cellOf(el("td", {}, column.cell(row))),
      number: column.number ? column.number(row) : undefined,
      ends: column.ends ? column.ends(row) : undefined }));
    const node = el("div", {}, scroll, offers(caption, files.tables, (form) => files.saveTable(form, {
      title: view.contains(node) && caption !== heading() ? `${heading()} ${caption}` : caption,
      heads: columns.map((column) => column.title),
      align: columns.map((column) => column.align), rows: ordered().map(cells) })));
    return { node, draw };
  }

  // ---- filters -------------------------------------------------------------------------------

  function select(label, choices, changed) {
    const node = el("select", { onchange: () => changed(node.value) },
      choices.map(([value, text]) => el("option", { value }, text)));
    return { node: el("label", {}, label, node), input: node };
  }

  // Filters of rows by their models; returns the controls and a test of a row.
  function filters(rows, changed, withOptions) {
    const chosen = { text: "", kind: "", licence: "", products: "", type: "", trained: "",
      ready: false, set: "" };
    const of = (key) => (value) => { chosen[key] = value; changed(); };
    const shownModels = rows.map((row) => models[row.model]);
    const unique = (values) => [...new Set(values)].sort();
    const listed = (values) => [["", "all"], ...values.map((value) => [value, value])];
    const families = unique(shownModels.flatMap((model) => model.trained_on || [])
      .map((name) => name.split("/")[0]));
    const trained = [["", "all"], ["nothing", "nothing"],
      ...families.map((name) => [`not ${name}`, `not on ${name}`]),
      ...families.map((name) => [`on ${name}`, `on ${name}`]), ["unknown", "unknown"]];
    const search = el("input", { type: "search", placeholder: "name", id: "search",
      oninput: () => of("text")(search.value.toLowerCase()) });
    const ready = el("input", { type: "checkbox", onchange: () => of("ready")(ready.checked) });
    const sets = unique(rows.map((row) => row.options || ""));
    const isWide = matchMedia("(min-width: 40rem)").matches;
    const controls = el("details", { class: "box", open: isWide }, el("summary", {}, "Filters"),
      el("div", { class: "filters", role: "group", "aria-label": "Filters" },
      el("label", {}, "Model", search),
      select("Kind", listed(kinds.filter((kind) => shownModels.some((m) => m.kind === kind))),
        of("kind")).node,
      select("Licence", listed(unique(shownModels.map((model) => model.licence))).map(
        ([value, text]) => [value, text.length > 40 ? `${text.slice(0, 38)}…` : text]),
        of("licence")).node,
      select("In products", [["", "all"], ["yes", "yes"], ["yes share-alike", "yes or share-alike"],
        ["no", "no"]], of("products")).node,
      select("Vectors", [["", "all"], ["bits", "bits"], ["numbers", "numbers"]], of("type")).node,
      select("Trained on", trained, of("trained")).node,
      withOptions && sets.length > 1
        ? select("Options", [["", "all"], ...sets.map((set) => [`=${set}`, set || "none"])],
          of("set")).node
        : null,
      el("label", { class: "tick" }, ready, "without download")));
    const learned = (model, name) =>
      (model.trained_on || []).some((one) => one.split("/")[0] === name);
    function keep(row) {
      const model = models[row.model];
      const [how, family] = chosen.trained.split(" ");
      return rowText(row).includes(chosen.text)
        && (!chosen.kind || model.kind === chosen.kind)
        && (!chosen.licence || model.licence === chosen.licence)
        && (!chosen.products || chosen.products.split(" ").includes(model.in_products))
        && (!chosen.type || model.is_binary === (chosen.type === "bits"))
        && (!chosen.ready || model.has_weights)
        && (!chosen.set || `=${row.options}` === chosen.set)
        && (how === "" || (how === "unknown" && model.trained_on === null)
          || (how === "nothing" && model.trained_on !== null && !model.trained_on.length)
          || (how === "on" && learned(model, family))
          || (how === "not" && model.trained_on !== null && !learned(model, family)));
    }
    return { controls, keep };
  }
  const rowText = (row) => `${models[row.model].name} ${row.options || ""}`.toLowerCase();

  // ---- drawings ------------------------------------------------------------------------------

  function scale(low, high, from, to, isLog) {
    const of = isLog ? Math.log10 : (value) => value;
    const [a, b] = [of(low), of(high)];
    return (value) => from + (b === a ? 0.5 : (of(value) - a) / (b - a)) * (to - from);
  }

  function ticks(low, high, isLog, most = 5) {
    if (isLog) {
      for (const digits of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
        const found = [];
        for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++)
          found.push(...digits.map((digit) => Number(`${digit}e${power}`)));
        const inside = found.filter((tick) => tick >= low && tick <= high);
        if (inside.length >= 4 || digits.length === 6) return inside;
      }
    }
    const rough = (high - low || 1) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((one) => one >= rough);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-6; n++)
      found.push(Number((n * step).toPrecision(10)));
    return found;
  }

  function marker(shape, x, y, attributes) {
    const r = 4;
    const paths = {
      square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
      triangle: `M${x} ${y - r - 1}l${r + 1} ${2 * r}h${-2 * r - 2}z`,
      down: `M${x} ${y + r + 1}l${r + 1} ${-2 * r}h${-2 * r - 2}z`,
      right: `M${x + r + 1} ${y}l${-2 * r} ${r + 1}v${-2 * r - 2}z`,
      diamond: `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}z`,
      cross: `M${x - r} ${y - r}l${2 * r} ${2 * r}M${x - r} ${y + r}l${2 * r} ${-2 * r}`,
      plus: `M${x - r} ${y}h${2 * r}M${x} ${y - r}v${2 * r}`,
    };
    const name = SHAPES[shape % SHAPES.length];
    if (name === "circle") return svg("circle", { cx: x, cy: y, r, ...attributes });
    const isOpen = name === "cross" || name === "plus"; // it has no inside
    return svg("path", { d: paths[name], ...attributes,
      class: [attributes.class, isOpen ? "open" : null].filter(Boolean).join(" ") || null });
  }

  const tip = (text) => svg("title", {}, text);
  const clipped = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  // A value with its interval on a short axis, for cells of tables. What lies beyond an end of the
  // axis is drawn as an arrow there.
  function whisker(value, ends, [least, most], isBest, width = 84) {
    const x = (number) => Math.min(Math.max(inner(number), 5), width - 5);
    const inner = scale(least, most, 5, width - 5);
    const side = value < least ? -1 : value > most ? 1 : 0;
    const [low, high] = ends || [value, value];
    const cap = (end) => (end >= least && end <= most ? `M${x(end)} 2.5v7` : "");
    return svg("svg", { class: "whisker", width, height: 12, viewBox: `0 0 ${width} 12`,
      "aria-hidden": "true" },
      svg("path", { class: "track", d: `M2 6H${width - 2}` }),
      ends ? svg("path", { class: "interval", d: `M${x(low)} 6H${x(high)}${cap(low)}${cap(high)}` })
        : null,
      side ? svg("path", { class: "value", d: side < 0 ? "M7 2.5L2 6l5 3.5"
        : `M${width - 7} 2.5l5 3.5l-5 3.5` })
        : svg("circle", { class: isBest ? "value best" : "value", cx: x(value), cy: 6, r: 3 }));
  }

  // The least and the largest value of a column, without the worst fifth, with ends of intervals.
  function rangeOf(board, column) {
    const { lower } = board.columns[column];
    const rows = board.rows.filter((row) => row.values[column] !== null)
      .sort((a, b) => (lower ? 1 : -1) * (a.values[column] - b.values[column]));
    const all = rows.slice(0, Math.ceil(0.8 * rows.length)).flatMap((row) =>
      [row.values[column], ...(row.ends[column] || [])]);
    return [Math.min(...all), Math.max(...all)];
  }

  function barsPanel(board, panel, keep) {
    const bars = panel.bars.filter(([row]) => keep(board.rows[row]));
    const width = 440, left = 150, right = 12, top = 26, step = 17;
    const height = top + step * bars.length + 34;
    const values = bars.flatMap(([, value, ends, marks]) => [value, ...(ends || []), ...marks])
      .filter((value) => value !== null);
    const isLog = panel.axis.log && values.every((value) => value > 0);
    const most = panel.axis.percent && Math.max(...values) > 0.3 ? 1 : Math.max(...values, 1e-9);
    const least = isLog ? Math.min(...values) / 1.2 : 0;
    const x = scale(least, most, left, width - right, isLog);
    const factor = panel.axis.percent ? 100 : 1;
    const named = ticks(factor * least, factor * most, isLog);
    const grid = named.map((tick) => {
      const place = x(tick / factor);
      return [svg("path", { class: "grid", d: `M${place} ${top - 4}V${height - 32}` }),
        svg("text", { x: place, y: height - 18, "text-anchor": "middle" }, short(tick))];
    });
    const drawn = bars.map(([row, value, ends, marks], place) => {
      const y = top + step * place, middle = y + step / 2 - 2;
      const model = models[board.rows[row].model];
      const name = rowName(board, board.rows[row]);
      const text = `${name}: ${onAxis(panel.axis, value)}`
        + (ends ? ` [${onAxis(panel.axis, ends[0])}, ${onAxis(panel.axis, ends[1])}]` : "");
      return svg("g", {}, tip(text),
        svg("text", { x: left - 6, y: middle + 4, "text-anchor": "end" }, clipped(name, 22)),
        isLog ? marker(0, x(value), middle, { class: `dot k${kinds.indexOf(model.kind)}` })
          : svg("rect", { class: `bar k${kinds.indexOf(model.kind)}`, x: left, y,
            width: Math.max(x(value) - left, 0.5), height: step - 4 }),
        ends ? svg("path", { class: "ends", d: `M${x(ends[0])} ${middle}H${x(ends[1])}`
          + `M${x(ends[0])} ${middle - 3}v6M${x(ends[1])} ${middle - 3}v6` }) : null,
        marks.map((mark, which) => (mark === null ? null
          : marker(panel.markers[which].shape * 2, x(mark), middle,
            { class: `mark p${panel.markers[which].colour}` }))));
    });
    return panelOf(panel.title, drawing(panel.title, width, height,
      svg("text", { class: "title", x: left, y: 14 }, panel.title), grid, drawn,
      svg("text", { x: (left + width) / 2, y: height - 3, "text-anchor": "middle" },
        panel.axis.label)));
  }

  const drawing = (label, width, height, ...children) =>
    svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawing", role: "img",
      "aria-label": label, "data-width": width }, children);

  // Axes and grid of a panel; returns the scales and the drawn parts.
  function frame(panel, xs, ys, width, height) {
    const left = 64, right = 16, top = 26, bottom = 40;
    const isLog = (axis, values) => axis.log && values.every((value) => value > 0);
    const [logX, logY] = [isLog(panel.x, xs), isLog(panel.y, ys)];
    const ends = (axis, values, log) => {
      if (axis.ticks && axis.ticks.length) return [0, axis.ticks.length - 1];
      const low = Math.min(...values), high = Math.max(...values);
      if (log) return [low / 1.15, high * 1.15];
      const room = (high - low || Math.abs(high) || 1) * 0.05;
      return [Math.max(low - room, Math.min(low, 0)), high + room];
    };
    const [x0, x1] = ends(panel.x, xs, logX), [y0, y1] = ends(panel.y, ys, logY);
    const x = scale(x0, x1, left, width - right, logX);
    const y = scale(y0, y1, height - bottom, top, logY);
    const factor = (axis) => (axis.percent ? 100 : 1);
    const places = (axis, low, high, log, most) =>
      axis.ticks && axis.ticks.length ? axis.ticks.map((label, place) => [place, label])
      : ticks(low * factor(axis), high * factor(axis), log, most)
        .map((tick) => [tick / factor(axis), short(tick)]);
    const parts = [
      places(panel.x, x0, x1, logX, 5).map(([value, label]) => [
        svg("path", { class: "grid", d: `M${x(value)} ${top}V${height - bottom}` }),
        svg("text", { x: Math.min(x(value), width - 3.2 * label.length),
          y: height - bottom + 14, "text-anchor": "middle" }, label)]),
      places(panel.y, y0, y1, logY, 5).map(([value, label]) => [
        svg("path", { class: "grid", d: `M${left} ${y(value)}H${width - right}` }),
        svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, label)]),
      svg("text", { class: "title", x: left, y: 14 }, clipped(panel.title, 46)),
      svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" },
        panel.x.label),
      svg("text", { transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle" }, panel.y.label),
    ];
    return { x, y, parts };
  }

  // `lines` are [place in the palette, name, points, labels].
  function linesPanel(panel, lines) {
    const points = lines.flatMap(([, , of]) => of);
    if (!points.length)
      return el("div", { class: "panel empty" }, `${panel.title}: tick a model in the table.`);
    const width = 400, height = 270;
    const { x, y, parts } = frame(panel, points.map(([a]) => a), points.map(([, b]) => b), width,
      height);
    const drawn = lines.map(([colour, name, of, labels]) => {
      const path = of.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`);
      return svg("g", { class: `line p${colour % COLOURS}${colour >= COLOURS ? " dashed" : ""}` },
        svg("path", { d: path.join("") }, tip(name)),
        of.length > 30 ? null : of.map(([a, b], i) => {
          const label = labels && labels[i] ? `, ${labels[i]}` : "";
          const text = `${name}${label}: ${onAxis(panel.x, a)}, ${onAxis(panel.y, b)}`;
          const ticked = panel.x.ticks && panel.x.ticks.length
            ? `${name}, ${panel.x.ticks[a]}: ${onAxis(panel.y, b)}` : text;
          const dot = marker(colour, x(a), y(b), {});
          dot.append(tip(ticked));
          return dot;
        }),
        labels && labels.length > 1 ? of.map(([a, b], i) =>
          svg("text", { class: "label", x: x(a) + 6, y: y(b) + 12 }, labels[i])) : null);
    });
    return panelOf(panel.title, drawing(panel.title, width, height, parts, drawn));
  }

  function dotsPanel(board, panel, keep, wanted) {
    const dots = panel.dots.filter(([row]) => keep(board.rows[row]));
    if (!dots.length) return el("div", { class: "panel empty" }, "No model passes the filters.");
    const width = 440, height = 330;
    const { x, y, parts } = frame(panel, dots.map((dot) => dot[1]), dots.map((dot) => dot[2]),
      width, height);
    const best = dots.filter((dot) => dot[3]).sort((a, b) => a[1] - b[1]);
    const path = best.map(([, a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`);
    const taken = [];
    const labels = dots.filter(([row, , , front]) => front || wanted.has(row)).map(([row, a, b]) => {
      const text = clipped(rowName(board, board.rows[row]), 22);
      const wide = 6 * text.length, left = x(a) + 7 + wide > width ? x(a) - 7 - wide : x(a) + 7;
      const spots = OFFSETS.map((dy) => y(b) + dy);
      const free = (top) => top > 28 && top < height - 44 && !taken.some(([l, t, r]) =>
        left < r && left + wide > l && Math.abs(top - t) < 11);
      const top = spots.find(free);
      if (top === undefined) return null;
      taken.push([left, top, left + wide]);
      const isMoved = top !== y(b) + OFFSETS[0];
      return [isMoved ? svg("path", { class: "leader", d: `M${x(a)} ${y(b)}L${left < x(a)
        ? left + wide : left} ${top - 4}` }) : null,
        svg("text", { class: "label", x: left, y: top }, text)];
    });
    const drawn = dots.map(([row, a, b]) => {
      const kind = kinds.indexOf(models[board.rows[row].model].kind);
      const dot = marker(kind, x(a), y(b), { class: `dot k${kind}` });
      dot.append(tip(`${rowName(board, board.rows[row])}: ${onAxis(panel.x, a)},`
        + ` ${onAxis(panel.y, b)}`));
      return dot;
    });
    return panelOf(panel.title, drawing(panel.title, width, height, parts,
      svg("path", { class: "front", d: path.join("") }), drawn, labels));
  }

  function gridPanel(panel) {
    const columns = panel.columns.map((_, place) => panel.values.map((row) => row[place]));
    const ends = (values) => {
      const there = values.filter((value) => value !== null);
      return [Math.min(...there), Math.max(...there)];
    };
    const whole = ends(panel.values.flat());
    const cell = (value, place) => {
      const [low, high] = panel.by_column ? ends(columns[place]) : whole;
      const node = el("td", { class: "r" }, value === null ? MISSING : onAxis(panel.axis, value));
      if (value !== null && high > low) {
        const share = (value - low) / (high - low);
        node.style.setProperty("--heat", `${Math.round(45 * share)}%`);
        node.classList.add("heat");
      }
      return node;
    };
    const title = [panel.title, panel.axis.label].filter(Boolean).join(", ");
    const cells = (name, row) => [{ text: name }, ...row.map((value) => ({
      text: value === null ? MISSING : onAxis(panel.axis, value), number: value }))];
    const save = (form) => files.saveTable(form, { title: `${heading()} ${title}`,
      heads: [panel.corner, ...panel.columns], align: ["l", ...panel.columns.map(() => "r")],
      rows: panel.rows.map((name, place) => cells(name, panel.values[place])) });
    return el("div", { class: "panel scroll" }, el("table", { class: "matrix" },
      el("caption", {}, title),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, panel.corner),
        panel.columns.map((name) => el("th", { scope: "col", class: "r" }, name)))),
      el("tbody", {}, panel.rows.map((name, i) =>
        el("tr", {}, el("th", { scope: "row" }, name), panel.values[i].map(cell))))),
      offers(title, files.tables, save));
  }

  function kindLegend(board) {
    const present = new Set(board.rows.map((row) => models[row.model].kind));
    return el("ul", { class: "legend" }, kinds.filter((kind) => present.has(kind)).map((kind) => {
      const place = kinds.indexOf(kind);
      return el("li", {}, swatch(`dot k${place}`, place), kind);
    }));
  }
  const swatch = (kind, shape) => svg("svg", { width: 16, height: 12, viewBox: "0 0 16 12",
    "aria-hidden": "true" }, marker(shape, 8, 6, { class: kind }));
  const lineLegend = (lines) => el("ul", { class: "legend" }, lines.map(([colour, name]) =>
    el("li", {}, svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
      svg("g", { class: `line p${colour % COLOURS}${colour >= COLOURS ? " dashed" : ""}` },
        svg("path", { d: "M1 6H25" }), marker(colour, 13, 6, {}))), name)));
  const markLegend = (panel) => el("ul", { class: "legend" }, panel.markers.map((one) =>
    el("li", {}, swatch(`mark p${one.colour}`, one.shape * 2), one.label)));

  // ---- pages ---------------------------------------------------------------------------------

  function figure(board, one, keep, wanted) {
    const rows = [...wanted].filter((row) => keep(board.rows[row])).sort((a, b) => a - b);
    const colour = new Map(rows.map((row, place) => [row, place]));
    const legends = [];
    const named = new Map();
    const panels = one.panels.map((panel) => {
      if (panel.kind === "bars") {
        if (!legends.length) legends.push(kindLegend(board));
        return [barsPanel(board, panel, keep), panel.markers.length ? markLegend(panel) : null];
      }
      if (panel.kind === "dots") {
        if (!legends.length) legends.push(kindLegend(board));
        return dotsPanel(board, panel, keep, wanted);
      }
      if (panel.kind === "grid") return gridPanel(panel);
      const lines = panel.lines.filter(([row]) => colour.has(row)).map(([row, points, labels]) => {
        const name = labels.length > 1 ? models[board.rows[row].model].name
          : rowName(board, board.rows[row]);
        named.set(colour.get(row), name);
        return [colour.get(row), name, points, labels];
      });
      return linesPanel(panel, lines);
    });
    if (named.size) legends.push(lineLegend([...named].sort(([a], [b]) => a - b)));
    return el("figure", { id: `figure-${one.name}` }, el("figcaption", {},
      el("h3", {}, one.title), el("p", {}, one.note)), legends,
      el("div", { class: "panels" }, panels.map((panel) =>
        Array.isArray(panel) ? el("div", {}, panel) : panel)));
  }

  function boardPage(board) {
    const place = boards.indexOf(board);
    const first = board.rows.findIndex((row) => row.options !== board.rows[0].options);
    const alone = first < 0 ? board.rows.length : first;
    if (!ticked.has(place)) ticked.set(place, new Set([...Array(Math.min(8, alone)).keys()]));
    const wanted = ticked.get(place);
    const held = el("div", {}), drawings = el("div", {});
    const told = el("p", { class: "told", "aria-live": "polite" });
    const count = el("p", { class: "count", "aria-live": "polite" });
    let table = null, apart = null, set = 0;
    const lines = new Map();
    const redraw = () => { table.draw(); figures(); };
    const { controls, keep } = filters(board.rows, redraw, true);

    function tell(row) {
      const place = board.rows.indexOf(row);
      apart = apart === place ? null : place;
      const near = apart === null ? [] : board.alike[apart];
      for (const [line, node] of lines) {
        node.classList.toggle("chosen", line === apart);
        node.classList.toggle("alike", near.includes(line));
        const button = node.querySelector("button.rank");
        if (button) button.setAttribute("aria-pressed", String(line === apart));
      }
      told.textContent = apart === null ? ""
        : `${near.length} of ${board.rows.length - 1} other rows can't be told from`
          + ` ${rowName(board, row)}; they are marked.`;
    }

    function tickBox(row) {
      const line = board.rows.indexOf(row);
      const box = el("input", { type: "checkbox",
        "aria-label": `draw the lines of ${rowName(board, row)}`,
        onchange: () => { box.checked ? wanted.add(line) : wanted.delete(line); figures(); } });
      box.checked = wanted.has(line);
      return box;
    }

    function build() {
      const columns = board.tables[set][1];
      const range = new Map(columns.map((column) => [column, rangeOf(board, column)]));
      const hasRanks = board.ranks.some(Boolean);
      const parts = columns.map((at) => board.columns[at].name.split("/"));
      let common = 0; // first parts that all names share
      while (columns.length > 1 && parts.every((one) => one.length > common + 1
        && one[common] === parts[0][common])) common++;
      const width = columns.length > 2 ? 58 : 84;
      const named = [
        { title: "model", align: "l", value: (row) => models[row.model].name,
          cell: (row) => [tickBox(row), modelLink(models[row.model].name),
            row.mark ? el("sup", { title: report.meanings[row.mark] }, row.mark) : null,
            row.warnings.length ? el("sup", { title: row.warnings.join(" ") }, "‡") : null,
            row.options ? el("span", { class: "options" }, row.options) : null] },
        hasRanks ? { title: "rank", align: "r",
          about: "Models that can't be told apart share ranks; press a rank to see which.",
          value: (row) => { const at = board.ranks[board.rows.indexOf(row)];
            return at ? Number(at.split("-")[0]) + Number(at.split("-").pop()) / 1e4 : null; },
          cell: (row) => { const at = board.ranks[board.rows.indexOf(row)];
            return at ? el("button", { type: "button", class: "rank", "aria-pressed": "false",
              "aria-label": `rank ${at}; show the rows that can't be told from it`,
              onclick: () => tell(row) }, at.replace("-", "–")) : MISSING; } } : null,
        ...columns.map((at) => {
          const column = board.columns[at];
          return { title: column.name.split("/").slice(common).join("/"), align: "r", descends: !column.lower,
            about: column.lower ? "less is better" : "more is better",
            value: (row) => row.values[at], number: (row) => row.values[at],
            ends: (row) => row.ends[at],
            cell: (row) => {
              const value = row.values[at], ends = row.ends[at];
              if (value === null) return MISSING;
              const isBest = (board.best[at] || []).includes(board.rows.indexOf(row));
              const digits = column.decimals === null ? 1 : column.decimals;
              const text = ends ? ends.map((end) => number(
                column.decimals === null ? 100 * end : end, digits)).join(", ") : "";
              return el("span", { class: "score" }, whisker(value, ends, range.get(at), isBest, width),
                el(isBest ? "b" : "span", {}, shown(column, value)),
                ends ? el("small", {}, `[${text}]`) : null);
            } };
        }),
        { title: "vector", align: "r", value: (row) => models[row.model].bytes,
          about: "numbers or bits; sorted by bytes", cell: (row) => models[row.model].size },
        { title: "kind", align: "l", value: (row) => models[row.model].kind,
          cell: (row) => models[row.model].kind },
        { title: "licence", align: "l", value: (row) => models[row.model].licence,
          cell: (row) => el("span", { class: "clip narrow", title: models[row.model].licence },
            models[row.model].licence) },
      ].filter(Boolean);
      lines.clear();
      apart = null;
      table = sortable(boardTitle(board), named, board.rows, { keep,
        each: (row, node) => lines.set(board.rows.indexOf(row), node),
        drawn: (found) => { count.textContent = `${found.length} of ${board.rows.length} rows`;
          told.textContent = ""; apart = null; } });
      held.replaceChildren(table.node);
    }

    function figures() {
      drawings.replaceChildren(...board.figures.map((one) => figure(board, one, keep, wanted)));
    }

    const tables = select("Scores", board.tables.map(([title], at) => [String(at), title]),
      (value) => { set = Number(value); build(); });
    const tick = (rows) => () => { wanted.clear(); rows.forEach((row) => wanted.add(row));
      redraw(); };
    build();
    figures();
    const all = board.rows.map((_, row) => row);
    const marks = new Set(board.rows.map((row) => row.mark));
    const warned = new Map();
    for (const row of board.rows) for (const text of row.warnings)
      warned.set(text, [...(warned.get(text) || []), rowName(board, row)]);
    return [
      el("h1", {}, boardTitle(board)),
      el("p", { class: "facts" }, board.protocols.map(([name, version, patches]) =>
        `${name}, version ${version}, ${number(patches, 0)} patches`).join("; "),
        ` · sorted by ${board.columns[board.headline].name}`),
      controls,
      el("div", { class: "filters" }, tables.node, el("span", { class: "buttons" }, "Lines:",
        el("button", { type: "button", onclick: tick(all.slice(0, Math.min(8, alone))) }, "first 8"),
        el("button", { type: "button", onclick: tick(all) }, "all"),
        el("button", { type: "button", onclick: tick([]) }, "none")), count, told),
      held,
      el("div", { class: "notes" },
        el("p", {}, "Fractions in percent; in brackets 95 % intervals over similar scenes or cases."
          + " Bold, and a filled ring: no other model is surely better, by the paired test over"
          + " scenes. ", el("a", { href: "#reading" }, "How to read this")),
        Object.entries(report.meanings).filter(([sign]) => marks.has(sign)).map(([sign, text]) =>
          el("p", {}, `${sign} ${text}`)),
        [...warned].map(([text, who]) => el("p", {}, `‡ ${who.join(", ")}: ${text}`)),
        board.unchecked.map((text) => el("p", {}, `Not checked: ${text}`))),
      board.published.length ? publishedOf(board) : null,
      el("h2", { id: "figures" }, "Figures"),
      el("p", {}, "Bars and points show the rows that pass the filters. Lines are of the rows that are"
        + " ticked in the table. Hold the pointer on a mark to read its number."),
      drawings,
      el("details", {}, el("summary", {}, "Data and protocol of these records"),
        el("ul", { class: "plain" }, board.sha256.map((text) => el("li", {}, el("code", {}, text))))),
    ];
  }

  function publishedOf(board) {
    const used = [...new Set(board.published.flatMap((row) => Object.keys(row.values)))];
    used.sort((a, b) => a - b);
    const text = (title, key) => ({ title, align: "l", value: (row) => row[key] || null,
      cell: (row) => row[key] || MISSING });
    const columns = [text("method", "method"), text("dim", "dim"),
      text("trained on", "trained_on"), text("options", "options"),
      ...used.map((at) => ({ title: board.columns[at].name, align: "r",
        descends: !board.columns[at].lower,
        value: (row) => (row.values[at] ? row.values[at][1] : null),
        cell: (row) => (row.values[at] ? row.values[at][0] : MISSING) })),
      { title: "here", align: "l", value: (row) => (row.model === null ? null
        : models[row.model].name),
        cell: (row) => (row.model === null ? "" : modelLink(models[row.model].name)) },
      text("source", "source"), text("remark", "remark")];
    return el("section", { class: "published" }, el("h2", {}, "Published, on the same data"),
      el("p", {}, "Numbers that papers print, as printed; they are not measured here and not ranked."
        + " In brackets: the score of the model named under “here”, which may have learned from other"
        + " data, less the published number."),
      sortable("Published numbers", columns, board.published).node);
  }

  function modelPage(model) {
    const place = models.indexOf(model);
    const scores = boards.flatMap((board) => board.rows.map((row, at) => ({ board, row, at }))
      .filter(({ row }) => row.model === place).flatMap(({ board, row, at }) =>
        board.tables[0][1].filter((column) => row.values[column] !== null).map((column) =>
          ({ board, row, at, column }))));
    const facts = [["kind", `${model.kind}: ${report.kinds[model.kind]}`],
      ["licence", model.licence],
      ["in products", `${model.in_products}: ${report.products[model.in_products]}`],
      ["vector", `${model.size}, ${number(model.bytes, 0)} bytes`],
      ["trained on", model.trained_on === null ? "unknown"
        : model.trained_on.join(", ") || "nothing"],
      ["weights", model.has_weights ? "no download needed" : "a download is needed"],
      ...Object.entries(model.speed).map(([cores, speed]) =>
        [`speed, ${cores} core${cores === "1" ? "" : "s"}`,
          `${number(speed, 0)} patches a second`]),
      ...model.facts.map(([name, text]) => [name === "weights" ? "sha256 of weights" : name, text])];
    const texts = report.published.texts;
    const columns = report.published.columns;
    const printed = report.published.rows.filter((row) => row[0] === place);
    const pictures = (report.pictures || []).filter((one) => one.model === place);
    const training = trainingFigure([place]);
    return [
      el("h1", {}, model.name),
      el("dl", { class: "card" }, facts.map(([name, text]) => [el("dt", {}, name),
        el("dd", {}, name === "made from" ? modelLink(text) : text)])),
      el("h2", {}, "Scores"),
      scores.length ? sortable(`Scores of ${model.name}`, [
        { title: "board", align: "l", value: ({ board }) => boardTitle(board),
          cell: ({ board, row }) => [
            el("a", { href: boardLink(board), class: "clip", title: boardTitle(board) },
              boardTitle(board)),
            row.options ? el("span", { class: "options" }, row.options) : null] },
        { title: "score", align: "l", value: ({ board, column }) => board.columns[column].name,
          cell: ({ board, column }) => board.columns[column].name },
        { title: "value", align: "r", descends: true,
          value: ({ row, column }) => row.values[column],
          number: ({ row, column }) => row.values[column],
          ends: ({ row, column }) => row.ends[column],
          cell: ({ board, row, column }) => [shown(board.columns[column], row.values[column]),
            row.mark ? el("sup", { title: report.meanings[row.mark] }, row.mark) : null,
            row.ends[column] ? el("small", {}, ` [${row.ends[column].map((end) =>
              board.columns[column].decimals === null ? number(100 * end, 1)
                : shown(board.columns[column], end)).join(", ")}]`) : null] },
        { title: "rank", align: "r", value: ({ board, at, column }) =>
          (column === board.headline && board.ranks[at]
            ? Number(board.ranks[at].split("-")[0]) : null),
          cell: ({ board, at, column }) => (column === board.headline && board.ranks[at]
            ? `${board.ranks[at].replace("-", "–")} of ${board.ranks.filter(Boolean).length}`
            : MISSING) },
        { title: "record", align: "l", cell: ({ row, column }) =>
          el("code", {}, row.records[column] || MISSING) },
      ], scores).node : el("p", {}, "There is no record of this model."),
      printed.length ? [el("h2", {}, "Published numbers"),
        el("p", {}, "Printed in papers about this method; not measured here."),
        printedTable(printed, columns, texts)] : null,
      training ? [el("h2", {}, "Training"), training] : null,
      pictures.length ? [el("h2", {}, "Where it fails"), pictures.map((one) =>
        el("figure", {}, el("figcaption", {}, one.title),
          one.source ? el("div", { class: "scroll" }, el("img", { src: one.source, alt: one.title }))
            : null))] : null,
    ];
  }

  // The training curves of the models at some places; null if none has a curve.
  function trainingFigure(places) {
    const { title, note, panels } = report.training;
    const trained = places.filter((place) => panels.some((panel) =>
      panel.lines.some(([row]) => row === place)));
    if (!trained.length) return null;
    const colour = new Map(trained.map((place, number) => [place, number]));
    const named = trained.map((place, number) => [number, models[place].name]);
    const drawn = panels.map((panel) => linesPanel(panel, panel.lines.filter(([row]) =>
      colour.has(row)).map(([row, points, labels]) =>
      [colour.get(row), models[row].name, points, labels])));
    return el("figure", { id: "figure-training" }, el("figcaption", {}, el("h3", {}, title),
      el("p", {}, note)), lineLegend(named), el("div", { class: "panels" }, drawn));
  }

  function modelsPage() {
    const rows = models.map((_, model) => ({ model }));
    let table = null;
    const count = el("p", { class: "count", "aria-live": "polite" });
    const { controls, keep } = filters(rows, () => table.draw(), false);
    const of = (key) => ({ value: (row) => models[row.model][key],
      cell: (row) => models[row.model][key] });
    const scored = models.map((_, place) => boards.filter((board) =>
      board.rows.some((row) => row.model === place)).length);
    table = sortable("Models", [
      { title: "model", align: "l", value: (row) => models[row.model].name,
        cell: (row) => modelLink(models[row.model].name) },
      { title: "kind", align: "l", ...of("kind") },
      { title: "vector", align: "r", value: (row) => models[row.model].bytes, ...{
        cell: (row) => models[row.model].size } },
      { title: "bytes", align: "r", ...of("bytes") },
      { title: "patches/s, one core", align: "r", descends: true,
        value: (row) => models[row.model].speed["1"] ?? null,
        cell: (row) => (models[row.model].speed["1"] === undefined ? MISSING
          : number(models[row.model].speed["1"], 0)) },
      { title: "boards", align: "r", descends: true, value: (row) => scored[row.model],
        cell: (row) => String(scored[row.model]) },
      { title: "trained on", align: "l", value: (row) => (models[row.model].trained_on === null
        ? null : models[row.model].trained_on.join(", ")),
        cell: (row) => { const on = models[row.model].trained_on;
          const text = on === null ? "unknown" : on.join(", ") || "nothing";
          return el("span", { class: "clip", title: text }, text); } },
      { title: "licence", align: "l", value: (row) => models[row.model].licence,
        cell: (row) => el("span", { class: "clip narrow", title: models[row.model].licence },
          models[row.model].licence) },
      { title: "in products", align: "l", ...of("in_products") },
    ], rows, { keep, drawn: (found) => {
      count.textContent = `${found.length} of ${rows.length} models`; } });
    const training = trainingFigure([...models.keys()]);
    return [el("h1", {}, "Models"), controls, count, table.node,
      training ? [el("h2", {}, "Training"), training] : null];
  }

  function printedTable(rows, columns, texts, options = {}) {
    const order = ["method", "data", "split", "score", "value", "unit", "options", "dim",
      "trained_on", ...(options.withModel ? ["model"] : []), "paper", "where", "remark"];
    const named = order.map((name) => ({ name, at: columns.indexOf(name) }));
    return sortable("Published numbers", named.map(({ name, at }) => at === 0
      ? { title: "here", align: "l", value: (row) => (row[0] === null ? null
        : models[row[0]].name),
        cell: (row) => (row[0] === null ? "" : modelLink(models[row[0]].name)) }
      : { title: name.replace("_", " "), align: name === "value" ? "r" : "l",
        value: (row) => (name === "value" ? Number(texts[row[at]]) : texts[row[at]] || null),
        cell: (row) => texts[row[at]] }), rows, options).node;
  }

  function publishedPage() {
    const { columns, texts, rows } = report.published;
    const chosen = {};
    const count = el("p", { class: "count", "aria-live": "polite" });
    const held = el("div", {});
    const keys = ["paper", "protocol", "data", "method"];
    const controls = el("div", { class: "filters", role: "group", "aria-label": "Filters" },
      keys.map((key) => {
        const at = columns.indexOf(key);
        const known = [...new Set(rows.map((row) => texts[row[at]]))].sort();
        return select(key, [["", "all"], ...known.map((text) => [`=${text}`, text || MISSING])],
          (value) => { chosen[at] = value; draw(); }).node;
      }));
    function draw() {
      const found = rows.filter((row) => Object.entries(chosen).every(([at, value]) =>
        !value || `=${texts[row[at]]}` === value));
      count.textContent = `${found.length} of ${rows.length} numbers`
        + (found.length > 400 ? "; the first 400 are shown, filters show the others" : "");
      held.replaceChildren(printedTable(found.slice(0, 400), columns, texts, { withModel: true }));
    }
    draw();
    return [el("h1", {}, "Published numbers"), el("p", {}, "Numbers that papers print, as printed."
      + " None of them was measured here, and none is ranked."), controls, count, held];
  }

  function overview() {
    const groups = new Map();
    for (const board of boards) groups.set(board.family, [...(groups.get(board.family) || []),
      board]);
    return [el("h1", {}, "Leaderboards"),
      el("p", {}, `${boards.length} leaderboards, ${models.length} models,`
        + ` ${report.published.rows.length} published numbers.`
        + " Each card shows the rows that share the first rank, or the best row where no test is"
        + " possible."),
      [...groups].map(([family, of]) => el("section", {}, el("h2", {}, family),
        el("div", { class: "cards" }, of.map(boardCard))))];
  }

  function boardCard(board) {
    const column = board.columns[board.headline];
    const first = board.rows.filter((row) => row.options === board.rows[0].options
      && row.values[board.headline] !== null);
    const top = (board.best[board.headline] || []).map((at) => board.rows[at])
      .filter((row) => first.includes(row));
    const rows = top.length ? top : first.slice(0, 1);
    const range = rangeOf(board, board.headline);
    return el("article", { class: "card" },
      el("h3", {}, el("a", { href: boardLink(board) }, `${board.data}, ${board.split}`)),
      el("p", { class: "facts" }, `${column.name} · ${board.rows.length} rows`),
      el("ul", { class: "plain" }, rows.slice(0, 4).map((row) => el("li", { class: "best" },
        modelLink(models[row.model].name), el("span", { class: "score" },
          whisker(row.values[board.headline], row.ends[board.headline], range, top.length > 0),
          el("b", {}, shown(column, row.values[board.headline])))))),
      rows.length > 4 ? el("p", { class: "facts" },
        `and ${rows.length - 4} more that can't be told from them`) : null);
  }

  // ---- navigation ----------------------------------------------------------------------------

  function menu() {
    const list = document.getElementById("boards");
    const groups = new Map();
    for (const board of boards) groups.set(board.family, [...(groups.get(board.family) || []),
      board]);
    list.replaceChildren(...[...groups].map(([family, of]) => el("li", {}, family,
      el("ul", {}, of.map((board) => el("li", {}, el("a", { href: boardLink(board) },
        of.filter((one) => one.data === board.data).length > 1
          ? `${board.data}, ${board.split}` : board.data)))))));
  }

  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }

  function route() {
    const [page, ...rest] = location.hash.slice(1).split("/").map(decoded);
    const reading = document.getElementById("reading");
    let content = null, title = "Leaderboards";
    if (page === "board") {
      const board = boards.find((one) => [one.family, one.data, one.split].join("/")
        === rest.join("/"));
      if (board) [content, title] = [boardPage(board), boardTitle(board)];
    } else if (page === "model") {
      const model = models.find((one) => one.name === rest.join("/"));
      if (model) [content, title] = [modelPage(model), model.name];
    } else if (page === "models") [content, title] = [modelsPage(), "Models"];
    else if (page === "published") [content, title] = [publishedPage(), "Published numbers"];
    else if (page === "reading") [content, title] = [[], "How to read this"];
    else if (page === "") content = overview();
    if (content === null) content = [el("h1", {}, "Not in this report"),
      el("p", {}, "There is no such board or model. ", el("a", { href: "#" }, "All leaderboards"))];
    reading.hidden = page !== "reading";
    view.replaceChildren(...content.flat(9).filter(Boolean));
    document.title = `${title} · descriptor report`;
    for (const link of document.querySelectorAll("nav a")) {
      const here = link.getAttribute("href") === (location.hash || "#");
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    scrollTo(0, 0);
  }

  function themes() {
    const button = document.getElementById("theme");
    const order = ["auto", "light", "dark"];
    let now = "auto";
    try { now = localStorage.getItem("theme") || "auto"; } catch { /* storage is off */ }
    const show = () => {
      if (!order.includes(now)) now = "auto";
      document.documentElement.dataset.theme = now;
      button.textContent = `Theme: ${now}`;
    };
    button.addEventListener("click", () => {
      now = order[(order.indexOf(now) + 1) % order.length];
      try { localStorage.setItem("theme", now); } catch { /* storage is off */ }
      show();
    });
    show();
  }

  addEventListener("hashchange", () => {
    if (location.hash === "#view") return; // the skip link
    route();
    document.getElementById("menu").open = matchMedia("(min-width: 60rem)").matches;
    view.focus({ preventScroll: true });
  });
  addEventListener("keydown", (event) => {
    const search = document.getElementById("search");
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && search && !typing) { event.preventDefault(); search.focus(); }
  });
  document.getElementById("menu").open = matchMedia("(min-width: 60rem)").matches;
  menu();
  themes();
  route();
})();
