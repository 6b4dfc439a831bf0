// The tensors as objects, and the parts of a model that their names show.

// Each row has a component, its title, and a pattern of names of modules. The first pattern that matches counts.
const COMPONENTS = [
  ["norm", "Norms", /(^|[._])(\w*norm\w*|ln_?\w*|layernorm)(\.|$)/i],
  ["embedding", "Embedding", /(^|[._])(embed\w*|wte|wpe|tok_\w+|token_embd|position_embd|position_embedding)(\.|$)|embed_tokens/i],
  ["output", "Output", /^(lm_head|output|output_projection|score|classifier)(\.|$)/i],
  ["attention", "Attention", /attn|attention|[._](q|k|v|o|qkv|c_attn)_?(proj)?(\.|$)|[._](query|key|value)(\.|$)/i],
  ["feed", "Feed-forward", /mlp|ffn|feed_forward|expert|(gate|up|down)_proj|[._]c_(fc|proj)(\.|$)|[._]w[123](\.|$)/i],
];
const COMPONENT_NAMES = Object.fromEntries([...COMPONENTS.map(([id, name]) => [id, name]), ["other", "Other"]]);
const COMPONENT_ORDER = ["attention", "feed", "embedding", "output", "norm", "other"];

function findComponent(name) {
  const end = name.slice(-120);  // longer names would take the expressions long
  for (const [id, , pattern] of COMPONENTS) if (pattern.test(end)) return id;
  return "other";
}

// Returns the objects of the tensors: one property for each column of the data.
function readTensors(data) {
  if (!data || !data.name) return [];
  const columns = Object.keys(data).filter((key) => key !== "types" && key !== "differences");
  return data.name.map((name, i) => {
    const tensor = {index: i};
    for (const column of columns) tensor[column] = data[column][i];
    tensor.type = data.types[tensor.type];
    // The first number in a name counts layers; later ones count experts and the like.
    const layer = name.match(/^(.*?)(?:^|\.)(\d+)(?:\.|$)(.*)$/);
    tensor.layer = layer ? Number(layer[2]) : null;
    const inLayer = layer ? layer[3] || layer[1] : name;
    tensor.role = inLayer.replace(/(^|\.)\d+(?=\.|$)/g, "$1*").replace(/\.weight$/, "");
    tensor.component = findComponent(layer ? layer[3] || name : name);
    tensor.outlier_share = tensor.elements ? tensor.outliers / tensor.elements : 0;
    return tensor;
  });
}

// Returns a map from each key to its items, in the order in which the keys first occur.
function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

function sumBy(items, of) {
  let sum = 0;
  for (const item of items) sum += of(item) || 0;
  return sum;
}
