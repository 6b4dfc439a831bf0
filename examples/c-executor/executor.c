// A Mistral executor in plain C. Poise opens the file, checks it and lends its bytes; this file has the rest: the
// tokenizer, the transformer and the loop that always takes the best token.
//
//   executor MODEL PROMPT [TOKENS]
//
// MODEL is an .alt file (or any other that Poise opens) with weights in f32, f16, or qint8. The weights stay in the
// mapped file; memory is used for the keys and values of the positions so far and a few vectors.
#include <math.h>
#include <poise.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("executor: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static poise_error error;

// Ends the program unless a call of Poise succeeded.
static void require_ok(poise_status status) {
  if (status != POISE_OK) die("%s%s%s", error.path, error.path[0] ? ": " : "", error.message);
}

static void* allocate(size_t count, size_t size) {
  void* memory = calloc(count ? count : 1, size);
  if (memory == NULL) die("out of memory");
  return memory;
}

// ---- Weights

typedef struct matrix {
  size_t rows;
  size_t columns;
  poise_dtype dtype;           // POISE_F32, POISE_F16, POISE_QINT8
  const unsigned char* bytes;  // borrowed from the model, in rows; not aligned
  poise_affine scale;          // of POISE_QINT8
} matrix;

static float read_f32(const unsigned char* bytes, size_t index) {
  float value;
  memcpy(&value, bytes + index * 4, 4);
  return value;
}

static float read_f16(const unsigned char* bytes, size_t index) {
  const unsigned bits = (unsigned)bytes[index * 2] | (unsigned)bytes[index * 2 + 1] << 8;
  const unsigned exponent = bits >> 10 & 31;
  const unsigned fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? ldexpf((float)fraction, -24)
                                          : ldexpf((float)(fraction | 1024), (int)exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

static float half_table[65536];  // read_f16 of every number: faster than arithmetic

static void make_half_table(void) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const unsigned char bytes[2] = {(unsigned char)(bits & 255), (unsigned char)(bits >> 8)};
    half_table[bits] = read_f16(bytes, 0);
  }
}

static size_t count_element_bytes(poise_dtype dtype) { return dtype == POISE_F32 ? 4 : dtype == POISE_F16 ? 2 : 1; }

// Returns the weight with that name, which must have this shape. A vector is a matrix of one row.
static matrix load_matrix(const poise_model* model, size_t rows, size_t columns, const char* format, ...) {
  char name[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);

  const poise_tensor* handle;
  const poise_part* part;
  poise_tensor_info tensor = POISE_TENSOR_INFO_INIT;
  poise_part_info data = POISE_PART_INFO_INIT;
  require_ok(poise_tensor_find(model, name, &handle, &error));
  require_ok(poise_tensor_describe(handle, &tensor, &error));
  require_ok(poise_tensor_part(handle, "data", &part, &error));
  require_ok(poise_part_describe(part, &data, &error));
  const int is_matrix = tensor.rank == 2 && tensor.dims[0] == rows && tensor.dims[1] == columns;
  const int is_vector = tensor.rank == 1 && tensor.dims[0] == columns && rows == 1;
  if (!is_matrix && !is_vector) die("%s: the shape is not [%zu, %zu]", name, rows, columns);
  const int is_float = tensor.layout == POISE_DENSE && (tensor.dtype == POISE_F32 || tensor.dtype == POISE_F16);
  const int is_code = tensor.layout == POISE_AFFINE && tensor.dtype == POISE_QINT8;
  if (!is_float && !is_code)
    die("%s: the type is %.*s, and this program reads only f32, f16 and qint8", name, POISE_TEXT(data.dtype_name));

  poise_bytes bytes;
  require_ok(poise_part_map(part, &bytes, &error));
  if (bytes.size != rows * columns * count_element_bytes(tensor.dtype))
    die("%s: found %zu bytes, expected %zu for this shape", name, bytes.size,
        rows * columns * count_element_bytes(tensor.dtype));
  return (matrix){rows, columns, tensor.dtype, bytes.data, tensor.affine};
}

// Computes out [columns] = row.
static void decode_row(const matrix* m, size_t row, float* out) {
  const unsigned char* bytes = m->bytes + row * m->columns * count_element_bytes(m->dtype);
  const int ranged = m->scale.min < m->scale.max;
  for (size_t i = 0; i < m->columns; ++i) {
    switch (m->dtype) {
      case POISE_F32: out[i] = read_f32(bytes, i); break;
      case POISE_F16: out[i] = half_table[bytes[2 * i] | bytes[2 * i + 1] << 8]; break;
      default:
        out[i] =
            ranged ? m->scale.min + (float)bytes[i] * m->scale.delta : (float)(signed char)bytes[i] * m->scale.delta;
    }
  }
}

// Computes out [rows] = m x, with x [columns].
static void multiply(const matrix* m, const float* x, float* out) {
  float* row = allocate(m->columns, sizeof(float));
  for (size_t r = 0; r < m->rows; ++r) {
    float sum = 0;
    decode_row(m, r, row);
    for (size_t i = 0; i < m->columns; ++i) sum += row[i] * x[i];
    out[r] = sum;
  }
  free(row);
}

// ---- The transformer

typedef struct layer {
  matrix input_norm, q, k, v, o;
  matrix post_norm, gate, up, down;
  float* keys;    // [context, kv_heads * head_size]
  float* values;  // the same
} layer;

typedef struct transformer {
  size_t hidden, inner, layer_count, heads, kv_heads, head_size, vocabulary, context, window;
  float eps, theta;
  matrix embedding, norm, head;
  layer* layers;
  float *x, *normed, *projected;  // [hidden]
  float *query, *attended;        // [heads * head_size]
  float *gate, *up;               // [inner]
  float* scores;                  // [context]
  float* logits;                  // [vocabulary]
} transformer;

static size_t read_size(const poise_attributes* config, const char* key) {
  int64_t value;
  require_ok(poise_attributes_get_integer(config, key, &value, &error));
  if (value < 1 || value > INT32_MAX) die("%s is %lld, expected 1 or more", key, (long long)value);
  return (size_t)value;
}

static float read_real(const poise_attributes* config, const char* key) {
  double value;
  require_ok(poise_attributes_get_real(config, key, &value, &error));
  return (float)value;
}

static transformer open_transformer(const poise_model* model, size_t positions) {
  const poise_attributes* config;
  transformer t;
  poise_text activation;
  int tied;
  memset(&t, 0, sizeof t);
  require_ok(poise_model_config(model, &config, &error));
  require_ok(poise_attributes_get_boolean(config, "tie_word_embeddings", &tied, &error));
  require_ok(poise_attributes_get_text(config, "hidden_act", &activation, &error));
  if (activation.size != 4 || memcmp(activation.data, "silu", 4) != 0)
    die("hidden_act is %.*s, and this program computes only silu", POISE_TEXT(activation));
  t.hidden = read_size(config, "hidden_size");
  t.inner = read_size(config, "intermediate_size");
  t.layer_count = read_size(config, "num_hidden_layers");
  t.heads = read_size(config, "num_attention_heads");
  t.kv_heads = read_size(config, "num_key_value_heads");
  t.head_size = read_size(config, "head_dim");
  t.vocabulary = read_size(config, "vocab_size");
  t.context = read_size(config, "max_position_embeddings");
  if (positions < t.context) t.context = positions;
  int64_t window;  // null: every position sees all before it
  t.window = poise_attributes_get_integer(config, "sliding_window", &window, NULL) == POISE_OK && window > 0
                 ? (size_t)window
                 : t.context;
  t.eps = read_real(config, "rms_norm_eps");
  t.theta = read_real(config, "rope_theta");
  if (t.heads % t.kv_heads != 0 || t.head_size % 2 != 0)
    die("%zu heads of size %zu do not fit %zu heads of keys and values", t.heads, t.head_size, t.kv_heads);

  const size_t width = t.heads * t.head_size;
  const size_t kv_width = t.kv_heads * t.head_size;
  t.embedding = load_matrix(model, t.vocabulary, t.hidden, "model.embed_tokens.weight");
  t.norm = load_matrix(model, 1, t.hidden, "model.norm.weight");
  t.head = tied ? t.embedding : load_matrix(model, t.vocabulary, t.hidden, "lm_head.weight");
  t.layers = allocate(t.layer_count, sizeof(layer));
  for (size_t i = 0; i < t.layer_count; ++i) {
    t.layers[i].input_norm = load_matrix(model, 1, t.hidden, "model.layers.%zu.input_layernorm.weight", i);
    t.layers[i].q = load_matrix(model, width, t.hidden, "model.layers.%zu.self_attn.q_proj.weight", i);
    t.layers[i].k = load_matrix(model, kv_width, t.hidden, "model.layers.%zu.self_attn.k_proj.weight", i);
    t.layers[i].v = load_matrix(model, kv_width, t.hidden, "model.layers.%zu.self_attn.v_proj.weight", i);
    t.layers[i].o = load_matrix(model, t.hidden, width, "model.layers.%zu.self_attn.o_proj.weight", i);
    t.layers[i].post_norm = load_matrix(model, 1, t.hidden, "model.layers.%zu.post_attention_layernorm.weight", i);
    t.layers[i].gate = load_matrix(model, t.inner, t.hidden, "model.layers.%zu.mlp.gate_proj.weight", i);
    t.layers[i].up = load_matrix(model, t.inner, t.hidden, "model.layers.%zu.mlp.up_proj.weight", i);
    t.layers[i].down = load_matrix(model, t.hidden, t.inner, "model.layers.%zu.mlp.down_proj.weight", i);
    t.layers[i].keys = allocate(t.context * kv_width, sizeof(float));
    t.layers[i].values = allocate(t.context * kv_width, sizeof(float));
  }
  t.x = allocate(t.hidden, sizeof(float));
  t.normed = allocate(t.hidden, sizeof(float));
  t.projected = allocate(t.hidden, sizeof(float));
  t.query = allocate(width, sizeof(float));
  t.attended = allocate(width, sizeof(float));
  t.gate = allocate(t.inner, sizeof(float));
  t.up = allocate(t.inner, sizeof(float));
  t.scores = allocate(t.context, sizeof(float));
  t.logits = allocate(t.vocabulary, sizeof(float));
  return t;
}

static void close_transformer(transformer* t) {
  for (size_t i = 0; i < t->layer_count; ++i) {
    free(t->layers[i].keys);
    free(t->layers[i].values);
  }
  float* buffers[] = {t->x, t->normed, t->projected, t->query, t->attended, t->gate, t->up, t->scores, t->logits};
  for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; ++i) free(buffers[i]);
  free(t->layers);
}

// Computes out = x / sqrt(mean(x^2) + eps) * weight.
static void rms_norm(const matrix* weight, const float* x, float eps, float* out) {
  double squares = 0;
  decode_row(weight, 0, out);
  for (size_t i = 0; i < weight->columns; ++i) squares += (double)x[i] * (double)x[i];
  const float factor = (float)(1.0 / sqrt(squares / (double)weight->columns + (double)eps));
  for (size_t i = 0; i < weight->columns; ++i) out[i] *= x[i] * factor;
}

// Rotary embedding: in each head, rotates element i of the first half with element i of the second.
static void rotate(const transformer* t, float* x, size_t heads, size_t position) {
  const size_t half = t->head_size / 2;
  for (size_t i = 0; i < half; ++i) {
    const float frequency = (float)(1.0 / pow((double)t->theta, (double)(2 * i) / (double)t->head_size));
    const double angle = (double)((float)position * frequency);
    const float cosine = (float)cos(angle);
    const float sine = (float)sin(angle);
    for (float* head = x; head < x + heads * t->head_size; head += t->head_size) {
      const float a = head[i];
      const float b = head[i + half];
      head[i] = a * cosine - b * sine;
      head[i + half] = b * cosine + a * sine;
    }
  }
}

// Computes the attention of one head: softmax(query . keys / sqrt(size)) . values, over the positions in the window.
static void attend(const transformer* t, const layer* at, size_t position, size_t head) {
  const size_t first = position < t->window ? 0 : position + 1 - t->window;
  const size_t width = t->kv_heads * t->head_size;
  const size_t offset =
      head / (t->heads / t->kv_heads) * t->head_size;  // several query heads share one of keys and values
  const float* query = t->query + head * t->head_size;
  float* out = t->attended + head * t->head_size;
  float best = -INFINITY;
  float sum = 0;
  for (size_t p = first; p <= position; ++p) {
    float score = 0;
    for (size_t i = 0; i < t->head_size; ++i) score += query[i] * at->keys[p * width + offset + i];
    t->scores[p] = score / sqrtf((float)t->head_size);
    best = fmaxf(best, t->scores[p]);
  }
  memset(out, 0, t->head_size * sizeof(float));
  for (size_t p = first; p <= position; ++p) {
    const float weight = expf(t->scores[p] - best);
    sum += weight;
    for (size_t i = 0; i < t->head_size; ++i) out[i] += weight * at->values[p * width + offset + i];
  }
  for (size_t i = 0; i < t->head_size; ++i) out[i] /= sum;
}

static void add(float* x, const float* y, size_t size) {
  for (size_t i = 0; i < size; ++i) x[i] += y[i];
}

// Runs the token at a position through all layers; t->logits become the scores of the next token.
static void forward(transformer* t, int32_t token, size_t position) {
  const size_t kv_width = t->kv_heads * t->head_size;
  if (token < 0 || (size_t)token >= t->vocabulary) die("token %d is out of range", (int)token);
  decode_row(&t->embedding, (size_t)token, t->x);
  for (layer* at = t->layers; at < t->layers + t->layer_count; ++at) {
    float* key = at->keys + position * kv_width;
    rms_norm(&at->input_norm, t->x, t->eps, t->normed);
    multiply(&at->q, t->normed, t->query);
    multiply(&at->k, t->normed, key);
    multiply(&at->v, t->normed, at->values + position * kv_width);
    rotate(t, t->query, t->heads, position);
    rotate(t, key, t->kv_heads, position);
    for (size_t head = 0; head < t->heads; ++head) attend(t, at, position, head);
    multiply(&at->o, t->attended, t->projected);
    add(t->x, t->projected, t->hidden);

    rms_norm(&at->post_norm, t->x, t->eps, t->normed);
    multiply(&at->gate, t->normed, t->gate);
    multiply(&at->up, t->normed, t->up);
    for (size_t i = 0; i < t->inner; ++i) t->gate[i] *= t->up[i] / (1 + expf(-t->gate[i]));  // silu(gate) * up
    multiply(&at->down, t->gate, t->projected);
    add(t->x, t->projected, t->hidden);
  }
  rms_norm(&t->norm, t->x, t->eps, t->normed);
  multiply(&t->head, t->normed, t->logits);
}

// ---- The tokenizer

static const char kSpace[] = "\xe2\x96\x81";  // U+2581, a space in tokens

typedef struct tokenizer {
  poise_vocabulary about;
  poise_token* tokens;  // by id
  int32_t* sorted;      // ids of the normal tokens, by text
  size_t sorted_count;
  int32_t bytes[256];  // ids of the byte tokens, or -1
} tokenizer;

static const poise_token* compared;  // qsort() takes no context

static int compare(poise_text a, poise_text b) {
  const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_ids(const void* a, const void* b) {
  return compare(compared[*(const int32_t*)a].text, compared[*(const int32_t*)b].text);
}

static tokenizer open_tokenizer(const poise_model* model) {
  tokenizer t;
  memset(&t, 0, sizeof t);
  t.about.size = sizeof t.about;
  require_ok(poise_model_vocabulary(model, &t.about, &error));
  if (t.about.kind != POISE_SENTENCEPIECE_BPE || t.about.remove_extra_whitespaces)
    die("this program reads only SentencePiece BPE vocabularies that keep extra white space");
  t.tokens = allocate(t.about.tokens, sizeof(poise_token));
  t.sorted = allocate(t.about.tokens, sizeof(int32_t));
  for (size_t i = 0; i < 256; ++i) t.bytes[i] = -1;
  for (size_t id = 0; id < t.about.tokens; ++id) {
    poise_token* token = &t.tokens[id];
    token->size = sizeof *token;
    require_ok(poise_vocabulary_token(model, id, token, &error));
    if (token->type == POISE_TOKEN_USER_DEFINED || token->type == POISE_TOKEN_UNUSED)
      die("token %zu is user-defined or unused, which this program does not support", id);
    if (token->type == POISE_TOKEN_BYTE && token->text.size == 6)
      t.bytes[strtoul(token->text.data + 3, NULL, 16) & 255] = (int32_t)id;  // <0x0A>
    if (token->type == POISE_TOKEN_NORMAL) t.sorted[t.sorted_count++] = (int32_t)id;
  }
  compared = t.tokens;
  qsort(t.sorted, t.sorted_count, sizeof(int32_t), compare_ids);
  return t;
}

static void close_tokenizer(tokenizer* t) {
  free(t->tokens);
  free(t->sorted);
}

// Returns the normal token with that text, or -1.
static int32_t find_token(const tokenizer* t, const char* data, size_t size) {
  const poise_text text = {data, size};
  size_t low = 0;
  size_t high = t->sorted_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = compare(t->tokens[t->sorted[middle]].text, text);
    if (order == 0) return t->sorted[middle];
    if (order < 0) low = middle + 1;
    if (order > 0) high = middle;
  }
  return -1;
}

// Returns the text with U+2581 for spaces, and one more in front. The caller frees it.
static char* add_space_symbols(const tokenizer* t, const char* text, size_t* size) {
  char* out = allocate(3 * strlen(text) + 4, 1);
  if (text[0] != '\0' && t->about.add_dummy_prefix) strcat(out, kSpace);
  *size = strlen(out);
  for (; *text != '\0'; ++text) {
    if (*text == ' ') {
      memcpy(out + *size, kSpace, 3);
      *size += 3;
    } else {
      out[(*size)++] = *text;
    }
  }
  return out;
}

static size_t find_character_size(unsigned char lead) {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Byte pair encoding: splits the text into characters, and joins the two neighbours whose concatenation is the token
// with the highest score, until no neighbours make a token. Returns the number of ids in `out`, which has space for one
// per byte and BOS.
static size_t encode(const tokenizer* t, const char* prompt, int32_t* out) {
  size_t size;
  char* text = add_space_symbols(t, prompt, &size);
  size_t* begins = allocate(size + 1, sizeof(size_t));  // of the pieces, and the end of the last
  size_t pieces = 0;
  size_t count = 0;
  for (size_t at = 0; at < size; at += find_character_size((unsigned char)text[at])) begins[pieces++] = at;
  begins[pieces] = size;
  for (;;) {
    size_t best = pieces;
    float best_score = -INFINITY;
    for (size_t i = 0; i + 1 < pieces; ++i) {
      const int32_t id = find_token(t, text + begins[i], begins[i + 2] - begins[i]);
      if (id < 0 || (best < pieces && t->tokens[id].score <= best_score)) continue;
      best = i;
      best_score = t->tokens[id].score;
    }
    if (best == pieces) break;
    memmove(&begins[best + 1], &begins[best + 2], (pieces - best - 1) * sizeof(size_t));
    --pieces;
  }
  if (t->about.bos_id >= 0) out[count++] = t->about.bos_id;
  for (size_t i = 0; i < pieces; ++i) {
    const int32_t id = find_token(t, text + begins[i], begins[i + 1] - begins[i]);
    if (id >= 0) out[count++] = id;
    for (size_t at = begins[i]; id < 0 && at < begins[i + 1]; ++at) {
      const int32_t byte = t->bytes[(unsigned char)text[at]];
      if (byte < 0) die("the vocabulary has no token for a character of the prompt");
      out[count++] = byte;
    }
  }
  free(begins);
  free(text);
  return count;
}

// Prints a token; the first one without the space that encode() put in front. `anything`: whether text was printed.
static void print_token(const tokenizer* t, int32_t id, int* anything) {
  const poise_token* token = &t->tokens[id];
  if (token->type == POISE_TOKEN_BYTE) {
    putchar((int)strtoul(token->text.data + 3, NULL, 16));
    *anything = 1;
  } else if (token->type == POISE_TOKEN_NORMAL) {
    for (size_t i = 0; i < token->text.size; ++i) {
      if (token->text.size - i < 3 || memcmp(token->text.data + i, kSpace, 3) != 0) {
        putchar(token->text.data[i]);
        *anything = 1;
        continue;
      }
      if (*anything || !t->about.add_dummy_prefix) putchar(' ');
      *anything = 1;
      i += 2;
    }
  }
  fflush(stdout);
}

// ---- The program

static int32_t find_best_token(const transformer* model, const tokenizer* text) {
  const size_t choices = text->about.tokens < model->vocabulary ? text->about.tokens : model->vocabulary;
  size_t best = 0;
  for (size_t i = 1; i < choices; ++i) best = model->logits[i] > model->logits[best] ? i : best;
  return (int32_t)best;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) die("usage: executor MODEL PROMPT [TOKENS]");
  const size_t wanted = argc == 4 ? (size_t)strtoul(argv[3], NULL, 10) : 128;
  poise_model* file = NULL;
  require_ok(poise_open(argv[1], NULL, &file, &error));
  make_half_table();

  tokenizer text = open_tokenizer(file);
  int32_t* prompt = allocate(3 * strlen(argv[2]) + 8, sizeof(int32_t));
  const size_t count = encode(&text, argv[2], prompt);
  transformer model = open_transformer(file, count + wanted);
  if (count == 0 || count > model.context)
    die("the prompt has %zu tokens, the model takes 1 to %zu", count, model.context);

  int anything = 0;  // has been printed
  size_t position = 0;
  for (; position < count; ++position) {
    forward(&model, prompt[position], position);
    print_token(&text, prompt[position], &anything);
  }
  for (size_t made = 0; made < wanted; ++made) {
    const int32_t token = find_best_token(&model, &text);
    if (token == text.about.eos_id) break;
    print_token(&text, token, &anything);
    if (made + 1 == wanted || position == model.context) break;
    forward(&model, token, position++);
  }
  putchar('\n');
  free(prompt);
  close_transformer(&model);
  close_tokenizer(&text);
  poise_model_free(file);
  return 0;
}
