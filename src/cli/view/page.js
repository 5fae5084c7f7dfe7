"use strict";
(() => {
// Voxels are levels of 8 bits. recon quantised them, compressed each slice (zlib), and wrote the bytes as text: 15 bits
// in each UTF-16 code unit from FIRST_UNIT on. The page decodes a slice when it is first shown.
const FIRST_UNIT = 0x2000;
const UNIT_BITS = 15;
// Decoded slices that are kept, in bytes.
const CACHE_BYTES = 512 * 2 ** 20;
const PHASE_WINDOW = [-Math.PI, Math.PI];

const byId = (id) => document.getElementById(id);
const allSeries = JSON.parse(byId("header").textContent).series;

function showError(text) {
  byId("error").textContent = text;
  byId("error").hidden = false;
}
window.addEventListener("error", (event) => showError(`The page failed: ${event.message}`));
window.addEventListener("unhandledrejection", (event) => showError(`The page failed: ${event.reason}`));

// ---- Voxels ----

function decodeUnits(text, start, count) {
  const bytes = new Uint8Array(count);
  let bits = 0;
  let available = 0;
  let next = start;
  for (let i = 0; i < count; i++) {
    if (available < 8) {
      const unit = text.charCodeAt(next++) - FIRST_UNIT;
      if (!(unit >= 0 && unit < 1 << UNIT_BITS)) {
        throw new Error("the voxels are damaged: the file was changed or cut after recon wrote it");
      }
      bits |= unit << available;
      available += UNIT_BITS;
    }
    bytes[i] = bits & 255;
    bits >>>= 8;
    available -= 8;
  }
  return bytes;
}

// Decompresses a slice. The first byte is its filter: with 1, levels are differences from the previous level, modulo
// the number of levels, mask + 1.
async function inflate(bytes, mask) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const filtered = new Uint8Array(await new Response(stream).arrayBuffer());
  const levels = filtered.subarray(1);
  if (filtered[0] === 1) {
    for (let i = 1; i < levels.length; i++) levels[i] = (levels[i] + levels[i - 1]) & mask;
  }
  return levels;
}

const unitCount = (bytes) => Math.ceil((8 * bytes) / UNIT_BITS);
const planeCount = (series) => (series.phaseLevels ? 2 : 1);
// Decoded volumes, the last used at the end: the text, the offsets of its slices, and promises of levels.
const cache = new Map();
let cachedBytes = 0;

function volumeOf(number, frame, coil) {
  const series = allSeries[number];
  const key = `${number}-${frame * series.coils + coil}`;
  let volume = cache.get(key);
  if (!volume) {
    const lengths = series.bytes[frame * series.coils + coil];
    const offsets = [0];
    lengths.forEach((bytes) => offsets.push(offsets[offsets.length - 1] + unitCount(bytes)));
    volume = { text: byId(`d${key}`).textContent, lengths, offsets, slices: [], bytes: 0 };
  }
  cache.delete(key);
  cache.set(key, volume);
  return volume;
}

function forgetOldVolumes() {
  // The two volumes that are shown stay.
  for (const [key, volume] of cache) {
    if (cachedBytes <= CACHE_BYTES || cache.size <= 2) break;
    cachedBytes -= volume.bytes;
    cache.delete(key);
  }
}

// Returns the levels of slice z, [nx, ny], or of its phases.
function sliceOf(volume, series, z, isPhase) {
  const index = z * planeCount(series) + (isPhase ? 1 : 0);
  if (!volume.slices[index]) {
    const mask = isPhase ? series.phaseLevels - 1 : series.highest;
    volume.slices[index] = inflate(decodeUnits(volume.text, volume.offsets[index], volume.lengths[index]), mask);
    volume.bytes += series.size[0] * series.size[1];
    cachedBytes += series.size[0] * series.size[1];
  }
  return volume.slices[index];
}

// Returns the levels of a plane, its first axis fastest.
async function planeLevels(place, isPhase) {
  const { series, volume, plane, slice } = place;
  if (plane === 0) return sliceOf(volume, series, slice, isPhase);
  const [nx, ny, nz] = series.size;
  const slices = await Promise.all(Array.from({ length: nz }, (_, z) => sliceOf(volume, series, z, isPhase)));
  const length = plane === 1 ? nx : ny;
  const levels = new Uint8Array(length * nz);
  slices.forEach((levelsOfSlice, z) => {
    for (let i = 0; i < length; i++) {
      levels[z * length + i] = levelsOfSlice[plane === 1 ? slice * nx + i : i * nx + slice];
    }
  });
  return levels;
}

const valueOf = (series, level) => (level - series.zero) * series.step;
const phaseOf = (series, level) => -Math.PI + (2 * Math.PI * level) / series.phaseLevels;

// ---- State ----

const state = {
  left: 0, right: allSeries.length > 1 ? 1 : -1, mode: "magnitude", plane: 0, slice: 0, frame: 0, coil: 0,
  together: true, factor: "1", windows: {},
};
const planeAxis = [2, 1, 0];
const axisName = ["x", "y", "z"];
const shown = () => [state.left, state.right].filter((number) => number >= 0);
const sizeText = (series) => series.size.join(" × ");

// Differences are of values if both images have a sign, or none. Otherwise they are of magnitudes.
const isSigned = (series) => series.kind === "real";
const usesMagnitudes = (a, b) => isSigned(a) !== isSigned(b);

function comparisonProblem(mode) {
  if (state.right < 0) return "A difference needs two images: select an image on the right.";
  const [a, b] = [allSeries[state.left], allSeries[state.right]];
  if (a.size.join() !== b.size.join()) {
    return `No difference: the left image has ${sizeText(a)} voxels, the right one ${sizeText(b)}.`;
  }
  if (mode === "phasedifference" && !(a.phaseLevels && b.phaseLevels)) {
    return `No phase difference: the ${a.phaseLevels ? "right" : "left"} image has no phases.`;
  }
  return "";
}

// Returns the place in a series that the state selects: indices beyond its end become the last ones.
function placeIn(number) {
  const series = allSeries[number];
  const plane = Math.min(state.plane, series.planes.length - 1);
  const last = [series.size[planeAxis[plane]], series.frames.length, series.coils].map((n) => n - 1);
  const wanted = [state.slice, state.frame, state.coil];
  const [slice, frame, coil] = wanted.map((index, i) => Math.min(index, last[i]));
  return {
    number, series, plane, slice, frame, coil, volume: volumeOf(number, frame, coil),
    isClamped: wanted.some((index, i) => index > last[i]) || plane !== state.plane,
  };
}

function sliceText(series, plane, slice) {
  if (plane === 0 && series.slices.length) return series.slices[slice];
  return `${axisName[planeAxis[plane]]} = ${slice}`;
}

const number = (value) => (value === 0 ? "0" : Number(value.toPrecision(4)).toString());

function placeText(place) {
  const { series, plane, slice, frame, coil } = place;
  const parts = [];
  if (series.size[planeAxis[plane]] > 1) parts.push(sliceText(series, plane, slice));
  if (series.frames.length > 1) parts.push(series.frames[frame]);
  if (series.coils > 1) parts.push(`coil ${coil}`);
  return parts.join(", ");
}

// ---- Grey scale ----

const levelRange = (series) => [valueOf(series, 0), valueOf(series, series.highest)];
const firstWindow = (series) => series.window.map((level) => valueOf(series, level));

// Returns black and white of the mode. Those of a difference come from the slice that was first shown.
function currentWindow() {
  if (!state.windows[state.mode]) {
    if (state.mode === "magnitude") state.windows.magnitude = firstWindow(allSeries[state.left]);
    if (state.mode.startsWith("phase")) state.windows[state.mode] = [...PHASE_WINDOW];
  }
  return state.windows[state.mode];
}

// Returns black and white of an image. If images have their own grey scales, the window of the right one is the left
// one's, relative to the first windows of both.
function windowFor(place) {
  const window = currentWindow();
  if (state.mode.startsWith("phase")) return state.mode === "phase" ? window : PHASE_WINDOW;
  const values = state.mode === "magnitude" ? window : state.windows.magnitude ?? firstWindow(allSeries[state.left]);
  if (state.together || place.number === state.left) return values;
  const [a, b] = [firstWindow(allSeries[state.left]), firstWindow(place.series)];
  return values.map((value) => b[0] + ((value - a[0]) * (b[1] - b[0])) / (a[1] - a[0]));
}

function greyTable(count, value, [black, white]) {
  return Uint8ClampedArray.from({ length: count }, (_, level) => (255 * (value(level) - black)) / (white - black));
}

// ---- Pictures ----

// Draws grey values of a plane. `grey` has the plane's first axis fastest.
function paint(canvas, place, grey) {
  const orientation = place.series.planes[place.plane];
  const sizes = orientation.axes.map((axis) => place.series.size[axis]);
  const [width, height] = orientation.firstInRows ? sizes : [sizes[1], sizes[0]];
  canvas.width = width;
  canvas.height = height;
  const picture = new ImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const [first, second] = indexAt(orientation, column, row, width, height);
      const value = grey[second * sizes[0] + first];
      pixels[row * width + column] = 0xff000000 | (value << 16) | (value << 8) | value;
    }
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
  fit(canvas, orientation, place.series);
}

function indexAt(orientation, column, row, width, height) {
  const across = orientation.mirrored ? width - 1 - column : column;
  const along = orientation.upwards ? height - 1 - row : row;
  return orientation.firstInRows ? [across, along] : [along, across];
}

// Sets the size on the screen: voxels have their true shape if it is known.
function fit(canvas, orientation, series) {
  const mm = series.voxel ?? [1, 1, 1];
  const [first, second] = orientation.axes.map((axis) => series.size[axis] * mm[axis]);
  const [width, height] = orientation.firstInRows ? [first, second] : [second, first];
  const panels = document.querySelectorAll("figure:not([hidden])").length;
  const room = [Math.max(120, (innerWidth - 26 - 10 * panels) / panels), Math.max(200, innerHeight - 330)];
  const scale = Math.min(room[0] / width, room[1] / height);
  canvas.style.width = `${Math.max(1, Math.round(width * scale))}px`;
  canvas.style.height = `${Math.max(1, Math.round(height * scale))}px`;
  canvas.parentElement.style.width = `max(220px, ${canvas.style.width})`;
}

const panels = {};
for (const name of ["left", "right", "difference"]) {
  const figure = byId(`panel-${name}`);
  const [caption, canvas, values] = ["figcaption", "canvas", "output"].map((part) => figure.querySelector(part));
  panels[name] = { figure, caption, canvas, values, content: null };
}

function edgeText(orientation) {
  const letters = orientation.known ? `; right ${orientation.right}, bottom ${orientation.bottom}` : "";
  return `${orientation.axes.map((axis) => axisName[axis]).join(", ")}${letters}`;
}

// Shows an image, and returns its levels.
async function loadImage(place) {
  const wantsPhase = state.mode.startsWith("phase") && place.series.phaseLevels;
  const [levels, phases] = await Promise.all([planeLevels(place, false), wantsPhase ? planeLevels(place, true) : null]);
  return { place, levels, phases };
}

function drawImage(panel, { place, levels, phases }) {
  const { series } = place;
  const window = windowFor(place);
  const isPhase = state.mode.startsWith("phase");
  let grey = new Uint8ClampedArray(levels.length);
  let text = `black ${number(window[0])}, white ${number(window[1])}`;
  if (isPhase && !phases) {
    text = series.kind === "complex" ? "the page was made without phases" : "no phase: the numbers are real";
  } else if (isPhase) {
    const table = greyTable(series.phaseLevels, (level) => phaseOf(series, level), window);
    grey = grey.map((_, i) => (levels[i] === 0 ? 0 : table[phases[i]]));
    text += " (rad)";
  } else {
    const table = greyTable(256, (level) => valueOf(series, level), window);
    grey = grey.map((_, i) => table[levels[i]]);
  }
  panel.content = { place, levels, phases };
  setCaption(panel, [series.name, placeText(place), `plane ${edgeText(series.planes[place.plane])}`, text], place.isClamped);
  paint(panel.canvas, place, grey);
}

function setCaption(panel, parts, isClamped) {
  panel.caption.textContent = parts.filter((part) => part).join(" · ");
  panel.caption.classList.toggle("clamped", isClamped);
}

// ---- Differences ----

const factors = new Map();

// Returns the factor of the left image with the smallest difference over the volume.
async function bestFactor(left, right) {
  const key = [left, right].map((place) => [place.number, place.frame, place.coil].join("-")).join();
  if (!factors.has(key)) {
    const magnitudes = usesMagnitudes(left.series, right.series);
    let [products, squares] = [0, 0];
    for (let z = 0; z < left.series.size[2]; z++) {
      const [a, b] = await Promise.all([left, right].map((p) => sliceOf(p.volume, p.series, z, false)));
      for (let i = 0; i < a.length; i++) {
        const [u, v] = [valueOf(left.series, a[i]), valueOf(right.series, b[i])];
        products += magnitudes ? Math.abs(u * v) : u * v;
        squares += u * u;
      }
    }
    factors.set(key, squares > 0 ? products / squares : 1);
  }
  return factors.get(key);
}

function differenceValues(a, b, factor) {
  const magnitudes = usesMagnitudes(a.place.series, b.place.series);
  const value = (image, i) => {
    const signed = valueOf(image.place.series, image.levels[i]);
    return magnitudes ? Math.abs(signed) : signed;
  };
  return Float32Array.from(a.levels, (_, i) => factor * value(a, i) - value(b, i));
}

function phaseDifferences(a, b) {
  const wrap = (angle) => angle - 2 * Math.PI * Math.floor((angle + Math.PI) / (2 * Math.PI));
  return Float32Array.from(a.levels, (level, i) => {
    if (level === 0 || b.levels[i] === 0) return NaN;
    return wrap(phaseOf(a.place.series, a.phases[i]) - phaseOf(b.place.series, b.phases[i]));
  });
}

function differenceText(a, b, factor) {
  const [left, right] = [a.place.series, b.place.series];
  const parts = [];
  if (state.mode === "phasedifference") {
    const step = (180 / Math.PI) * (Math.PI / left.phaseLevels + Math.PI / right.phaseLevels);
    parts.push(`left minus right phase in rad, within ${number(step)}° of the difference in the files`);
  } else {
    parts.push(`${factor === 1 ? "left" : `${factor.toPrecision(6)} × left`} minus right`);
    parts.push(factor === 1 ? "no scaling" : "scaled by the factor with the smallest difference over the volume");
    if (left.kind !== right.kind && [left.kind, right.kind].includes("complex")) {
      parts.push(`only the ${left.kind === "complex" ? "left" : "right"} image is complex: magnitudes are compared`);
    } else if (left.kind === "complex") {
      parts.push("magnitudes are compared, not the phases");
    } else if (usesMagnitudes(left, right)) {
      parts.push(`only the ${isSigned(left) ? "left" : "right"} image has a sign: magnitudes are compared`);
    }
    const bound = (Math.abs(factor) * left.step + right.step) / 2;
    parts.push(`within ${number(bound)} of the difference in the files`);
  }
  const orientation = (image) => JSON.stringify(image.place.series.planes[image.place.plane]);
  if (orientation(a) !== orientation(b)) parts.push("the orientations differ: voxels are compared by index");
  if (a.place.isClamped || b.place.isClamped) parts.push(`${placeText(a.place)} minus ${placeText(b.place)}`);
  return parts;
}

async function drawDifference(a, b) {
  const panel = panels.difference;
  const isPhase = state.mode === "phasedifference";
  const factor = !isPhase && state.factor === "best" ? await bestFactor(a.place, b.place) : 1;
  const values = isPhase ? phaseDifferences(a, b) : differenceValues(a, b, factor);
  if (!state.windows[state.mode]) {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const width = largest > 0 ? largest : a.place.series.step;
    state.windows[state.mode] = [-width, width];
  }
  const [black, white] = currentWindow();
  const grey = new Uint8ClampedArray(values.length);
  for (let i = 0; i < grey.length; i++) {
    grey[i] = Number.isNaN(values[i]) ? 0 : (255 * (values[i] - black)) / (white - black);
  }
  panel.content = { place: a.place, difference: values };
  setCaption(panel, [...differenceText(a, b, factor), `black ${number(black)}, white ${number(white)}`], false);
  paint(panel.canvas, a.place, grey);
}

// ---- Drawing ----

let drawing = 0;

async function draw() {
  const ticket = ++drawing;
  updateControls();
  const isDifference = state.mode.endsWith("difference");
  const images = await Promise.all(shown().map((number) => loadImage(placeIn(number))));
  // A newer state is already being drawn.
  if (ticket !== drawing) return;
  panels.right.figure.hidden = images.length < 2;
  panels.difference.figure.hidden = !isDifference;
  images.forEach((image, i) => drawImage([panels.left, panels.right][i], image));
  if (isDifference) await drawDifference(...images);
  if (ticket !== drawing) return;
  forgetOldVolumes();
  updateWindowControls();
  showValues();
  const { dataset } = document.documentElement;
  dataset.first ??= String(performance.now());
  dataset.drawn = String(ticket);
}

function change(values) {
  Object.assign(state, values);
  return draw();
}

function updateSlider(name, count, text) {
  byId(`${name}-label`).hidden = count < 2;
  byId(name).max = count - 1;
  state[name] = Math.max(0, Math.min(state[name], count - 1));
  byId(name).value = state[name];
  byId(`${name}-name`).textContent = text(state[name]);
}

function updateControls() {
  const series = shown().map((number) => allSeries[number]);
  const planes = series.reduce((most, s) => (s.planes.length > most.planes.length ? s : most));
  state.plane = Math.min(state.plane, planes.planes.length - 1);
  byId("plane-label").hidden = planes.planes.length < 2;
  [...byId("plane").options].forEach((option, i) => { option.hidden = i >= planes.planes.length; });
  byId("plane").value = state.plane;
  const most = (count) => series.reduce((best, s) => (count(s) > count(best) ? s : best));
  const axis = planeAxis[state.plane];
  const [slices, frames, coils] = [(s) => s.size[axis], (s) => s.frames.length, (s) => s.coils].map(most);
  updateSlider("slice", slices.size[axis], (slice) => sliceText(slices, state.plane, slice));
  updateSlider("frame", frames.frames.length, (frame) => frames.frames[frame]);
  updateSlider("coil", coils.coils, (coil) => String(coil));
  const reasons = ["difference", "phasedifference"].map((mode) => {
    const reason = comparisonProblem(mode);
    document.querySelector(`input[value="${mode}"]`).disabled = reason !== "";
    if (reason && state.mode === mode) state.mode = "magnitude";
    return reason;
  });
  byId("why").textContent = reasons[0] || reasons[1];
  document.querySelector(`input[value="${state.mode}"]`).checked = true;
  byId("magnitude-name").textContent = series.every(isSigned) ? "value" : series.some(isSigned) ? "magnitude or value" : "magnitude";
  byId("left").value = state.left;
  byId("right").value = state.right;
  byId("factor").value = state.factor;
  byId("factor-label").hidden = state.mode !== "difference";
  byId("together").checked = state.together;
  byId("together-label").hidden = series.length < 2 || state.mode !== "magnitude";
}

function updateWindowControls() {
  const [black, white] = currentWindow();
  const [width, level] = [white - black, (white + black) / 2];
  const series = allSeries[state.left];
  const ranges = { magnitude: levelRange(series), phase: PHASE_WINDOW, phasedifference: PHASE_WINDOW };
  const most = Math.max(...levelRange(series).map(Math.abs));
  const [low, high] = ranges[state.mode] ?? [-most, most];
  const sliders = [["window", 0, Math.max(high - low, width), width], ["level", Math.min(low, level), Math.max(high, level), level]];
  for (const [name, min, max, value] of sliders) {
    Object.assign(byId(name), { min, max });
    byId(name).value = value;
    byId(`${name}-name`).textContent = number(value);
  }
}

// Sets width and centre of the window. The width stays positive, so that no grey value is undefined.
function setWindow(width, level) {
  const least = (allSeries[state.left].step || 1) / 16;
  const half = Math.max(width, state.mode.startsWith("phase") ? 0.01 : least) / 2;
  state.windows[state.mode] = [level - half, level + half];
  return draw();
}

function resetWindow() {
  delete state.windows[state.mode];
  return draw();
}

// ---- Values under the cursor ----

let pointed = null;

function voxelAt(panel, event) {
  const { canvas, content } = panel;
  const box = canvas.getBoundingClientRect();
  const column = Math.floor(((event.clientX - box.left) / box.width) * canvas.width);
  const row = Math.floor(((event.clientY - box.top) / box.height) * canvas.height);
  if (!content || column < 0 || row < 0 || column >= canvas.width || row >= canvas.height) return null;
  const orientation = content.place.series.planes[content.place.plane];
  return { plane: content.place.plane, at: indexAt(orientation, column, row, canvas.width, canvas.height) };
}

function valueText({ place: { series }, levels, phases, difference }, at) {
  if (difference) return Number.isNaN(difference[at]) ? "no phase: a magnitude is 0" : `difference ${number(difference[at])}`;
  const level = levels[at];
  const isTop = level === series.highest && series.clipped > 0;
  const value = number(valueOf(series, level));
  const parts = [isTop ? `at least ${value}` : `${value} ± ${number(series.step / 2)}`];
  if (phases && level === 0) parts.push("no phase");
  if (phases && level > 0) {
    parts.push(`phase ${number(phaseOf(series, phases[at]))} ± ${number(Math.PI / series.phaseLevels)} rad`);
  }
  return parts.join(", ");
}

function showValues() {
  for (const panel of Object.values(panels)) {
    const { content, values, figure } = panel;
    values.textContent = "";
    if (!pointed || !content || figure.hidden) continue;
    const { series, plane, slice } = content.place;
    // A 2D image beside a volume of which a different plane is shown has no voxel there.
    if (plane !== pointed.plane) continue;
    const { axes } = series.planes[plane];
    const voxel = [0, 0, 0];
    [voxel[axes[0]], voxel[axes[1]], voxel[planeAxis[plane]]] = [...pointed.at, slice];
    const isInside = axes.every((axis) => voxel[axis] < series.size[axis]);
    const at = pointed.at[1] * series.size[axes[0]] + pointed.at[0];
    values.textContent = `voxel [${voxel.join(", ")}]\n${isInside ? valueText(content, at) : "outside this image"}`;
  }
}

// ---- Events ----

const step = (name, by) => change({ [name]: Math.max(0, state[name] + by) });

function listenToPanel(panel) {
  const { canvas } = panel;
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    const [black, white] = currentWindow();
    drag = { x: event.clientX, y: event.clientY, width: white - black, level: (white + black) / 2 };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    pointed = voxelAt(panel, event);
    if (!drag) return showValues();
    const [right, up] = [event.clientX - drag.x, drag.y - event.clientY];
    if (right === 0 && up === 0) return showValues();
    return setWindow(drag.width * Math.exp(right / 150), drag.level + (up * drag.width) / 300);
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { pointed = null; showValues(); });
  canvas.addEventListener("dblclick", resetWindow);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.deltaY !== 0) step("slice", event.deltaY > 0 ? -1 : 1);
  }, { passive: false });
}

const keys = {
  ArrowUp: () => step("slice", 1), ArrowDown: () => step("slice", -1),
  PageUp: () => step("slice", 1), PageDown: () => step("slice", -1),
  ArrowRight: () => step("frame", 1), ArrowLeft: () => step("frame", -1),
  "]": () => step("coil", 1), "[": () => step("coil", -1),
  Home: () => change({ slice: 0 }), End: () => change({ slice: Infinity }),
  1: () => selectPlane(0), 2: () => selectPlane(1), 3: () => selectPlane(2),
  m: () => change({ mode: "magnitude" }), p: () => change({ mode: "phase" }), d: () => change({ mode: "difference" }),
  r: resetWindow,
};

// Shows the middle slice of a plane.
function selectPlane(plane) {
  if (!shown().some((number) => plane < allSeries[number].planes.length)) return undefined;
  return change({ plane, slice: middleSlice(plane) });
}

const middleSlice = (plane) => Math.floor(Math.max(...shown().map((n) => allSeries[n].size[planeAxis[plane]])) / 2);

function listen() {
  Object.values(panels).forEach(listenToPanel);
  for (const name of ["slice", "frame", "coil"]) {
    byId(name).addEventListener("input", () => change({ [name]: Number(byId(name).value) }));
  }
  for (const name of ["left", "right"]) {
    byId(name).addEventListener("change", () => change({ [name]: Number(byId(name).value), windows: {} }));
  }
  byId("plane").addEventListener("change", () => selectPlane(Number(byId("plane").value)));
  byId("factor").addEventListener("change", () => change({ factor: byId("factor").value }));
  byId("together").addEventListener("change", () => change({ together: byId("together").checked }));
  byId("reset").addEventListener("click", resetWindow);
  document.querySelectorAll("input[name=mode]").forEach((input) => {
    input.addEventListener("change", () => change({ mode: input.value }));
  });
  for (const name of ["window", "level"]) {
    byId(name).addEventListener("input", () => setWindow(Number(byId("window").value), Number(byId("level").value)));
  }
  document.addEventListener("keydown", (event) => {
    const inControl = event.target.matches?.("select, input[type=range], input[type=radio]");
    const isArrow = event.key.length > 1;
    if (event.ctrlKey || event.altKey || event.metaKey || (inControl && isArrow) || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("resize", draw);
  window.addEventListener("hashchange", () => { readAddress(); draw(); });
}

// Reads a state from the address, such as page.html#slice=3&mode=phase&low=0&high=1.
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const whole = (name, most) => {
    const value = Number(given.get(name));
    if (given.has(name) && Number.isInteger(value) && value >= (name === "right" ? -1 : 0) && value <= most) {
      state[name] = value;
    }
  };
  ["left", "right"].forEach((name) => whole(name, allSeries.length - 1));
  whole("plane", 2);
  if (["left", "right", "plane"].some((name) => given.has(name))) state.slice = middleSlice(state.plane);
  ["slice", "frame", "coil"].forEach((name) => whole(name, Infinity));
  const mode = given.get("mode");
  if (document.querySelector(`input[name=mode][value="${CSS.escape(mode ?? "")}"]`)) state.mode = mode;
  if (["1", "best"].includes(given.get("factor"))) state.factor = given.get("factor");
  const [low, high] = [Number(given.get("low") ?? NaN), Number(given.get("high") ?? NaN)];
  if (high > low) state.windows[state.mode] = [low, high];
}

function describeSeries(series) {
  const bits = Math.round(Math.log2(series.highest + 1));
  const kind = { magnitude: "magnitudes", real: "real numbers", complex: "complex numbers" }[series.kind];
  const parts = [
    `${series.name}: ${sizeText(series)} voxels, ${kind}.`,
    `Values are rounded to multiples of ${number(series.step)} (${bits} bits), within ${number(series.step / 2)} of the file.`,
  ];
  if (series.phaseLevels) parts.push(`Phases are rounded to multiples of ${number(360 / series.phaseLevels)}°.`);
  if (series.kind === "complex" && !series.phaseLevels) parts.push("The page was made without phases.");
  if (series.clipped) {
    parts.push(`${series.clipped} voxels above ${number(levelRange(series)[1])} are shown as this value.`);
  }
  if (!series.planes[0].known) parts.push("The orientation in the patient is unknown: x to the right, y upwards.");
  if (!series.voxel) parts.push("The voxel size is unknown: voxels are drawn as squares.");
  return parts.join(" ");
}

function start() {
  if (typeof DecompressionStream === "undefined") {
    showError("This browser cannot decompress the images. Use Chrome or Edge 80, Firefox 113, Safari 16.4 or newer.");
    return;
  }
  document.title = `recon view: ${allSeries.map((series) => series.name).join(", ")}`;
  for (const [name, first] of [["left", 0], ["right", -1]]) {
    if (first < 0) byId(name).add(new Option("none", -1));
    allSeries.forEach((series, i) => byId(name).add(new Option(series.name, i)));
  }
  ["x, y", "x, z", "y, z"].forEach((name, i) => byId("plane").add(new Option(name, i)));
  for (const series of allSeries) {
    const line = document.createElement("div");
    line.textContent = describeSeries(series);
    byId("notes").append(line);
  }
  state.slice = middleSlice(0);
  readAddress();
  listen();
  draw();
}

start();
})();
