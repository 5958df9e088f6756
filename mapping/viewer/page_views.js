// How views become layers of a map, and which of them are seen.

const told = JSON.parse(document.getElementById("told").textContent);

const GROUPS = [
  ["map", "Map"],
  ["comparison", "Changes"],
  ["osm", "OpenStreetMap"],
  ["truth", "Truth"],
  ["labels", "Labels"],
  ["scores", "Scores"],
  ["imagery", "Imagery"],
];
const VIEWS = [...told.vectors, ...told.rasters];
const groups = GROUPS.filter(([key]) => VIEWS.some((view) => view.group === key));

/** What the switches and sliders say; a map is drawn from it, never the other way round. */
const state = {
  shown: new Set(VIEWS.filter((view) => view.shown).map((view) => view.id)),
  opacity: new Map(groups.map(([key]) => [key, 1])),
  score: 0,
};

const AREA = ["match", ["geometry-type"], ["Polygon", "MultiPolygon"], true, false];
const DARK = "#0c141b";

/** Lines grow with the zoom and outlines stay fine; `more` widens the dark edge below them. */
const width = (more) => [
  "interpolate", ["linear"], ["zoom"],
  11, ["case", AREA, 0.4, 1 + more * 0.4],
  16, ["case", AREA, 1.4 + more * 0.5, 3 + more],
  20, ["case", AREA, 2.2 + more * 0.8, 6 + more],
];

function vectorLayers(view) {
  const { colour, dashed, filled } = view.style;
  const line = { id: `${view.id}-line`, source: view.id, type: "line" };
  return [
    filled && {
      id: `${view.id}-fill`, source: view.id, type: "fill", filter: AREA, share: 0.24,
      paint: { "fill-color": colour },
    },
    {
      ...line, id: `${view.id}-edge`, share: 0.55, layout: { "line-join": "round" },
      paint: { "line-color": DARK, "line-width": width(1.6) },
    },
    {
      ...line, share: 1, layout: { "line-join": "round" },
      paint: {
        "line-color": colour, "line-width": width(0),
        ...(dashed && { "line-dasharray": [2.2, 1.2] }),
      },
    },
  ].filter(Boolean);
}

function rasterLayers(view) {
  const paint = {
    "raster-fade-duration": 0,
    "raster-resampling": view.kind === "labels" ? "nearest" : "linear",
  };
  return [{ id: `${view.id}-image`, source: view.id, type: "raster", share: view.opacity, paint }];
}

/** All layers, the lowest first: the last group of the panel lies at the bottom. */
const LAYERS = [...groups].reverse().flatMap(([key]) =>
  VIEWS.filter((view) => view.group === key)
    .reverse()
    .flatMap((view) => ("image" in view ? rasterLayers(view) : vectorLayers(view)))
    .map((layer) => ({ ...layer, group: key })),
);

function mapStyle() {
  const sources = {};
  for (const view of told.rasters) {
    sources[view.id] = { type: "image", url: view.image, coordinates: view.corners };
  }
  for (const view of told.vectors) {
    sources[view.id] = { type: "geojson", data: view.features, tolerance: 0.2 };
  }
  sources.picked = { type: "geojson", data: { type: "FeatureCollection", features: [] } };
  const layers = LAYERS.map(({ share, group, ...layer }) => ({
    ...layer, layout: { ...layer.layout, visibility: "none" },
  }));
  const picked = [["picked-edge", DARK, 7], ["picked-line", "#ffffff", 3]];
  return {
    version: 8,
    sources,
    layers: [
      { id: "ground", type: "background", paint: { "background-color": "#dcdad4" } },
      ...layers,
      ...picked.map(([id, colour, wide]) => ({
        id, source: "picked", type: "line",
        paint: { "line-color": colour, "line-width": wide },
      })),
    ],
  };
}

function makeMap(container, options) {
  const map = new maplibregl.Map({
    container, style: mapStyle(), attributionControl: false, maplibreLogo: false,
    dragRotate: false, pitchWithRotate: false, touchPitch: false, rollEnabled: false, maxPitch: 0,
    maxZoom: 22, fadeDuration: 0, ...options,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.on("error", (event) => trouble(`The map could not draw something: ${event.error.message}`));
  return map;
}

/** Make a map show the views in `shown`, with the opacities and the least score of the state. */
function draw(map, shown) {
  const sure = [
    "any", ["!", ["has", "score"]], [">=", ["to-number", ["get", "score"]], state.score],
  ];
  for (const { id, source, type, group, share, filter } of LAYERS) {
    map.setLayoutProperty(id, "visibility", shown.has(source) ? "visible" : "none");
    map.setPaintProperty(id, `${type}-opacity`, share * state.opacity.get(group));
    if (type !== "raster") map.setFilter(id, filter ? ["all", filter, sure] : sure);
  }
}

/** The imagery that is switched on: it stays below whatever else is chosen. */
function imageryShown() {
  return told.rasters
    .filter((view) => view.group === "imagery" && state.shown.has(view.id))
    .map((view) => view.id);
}

function trouble(words) {
  console.error(words);
  const place = document.getElementById("trouble");
  place.textContent = words;
  place.hidden = false;
}

/** An element with its properties and children; strings become text, never markup. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
