// poise.h: Poise for C programs - model weight files opened, checked, converted, written and run.
//
//  1. Status. Every call that can fail returns a poise_status: POISE_OK, which is 0, or the kind of failure. Outputs are
//     written by calls that succeed and left alone by those that fail; only a buffer that was being filled may hold anything.
//  2. Errors. The last parameter of such a call is the caller's poise_error, or NULL. It is overwritten by every call: kind,
//     message, path and offset of the failure; POISE_OK and empty texts after success. Poise keeps no error anywhere else.
//  3. Ownership. What is made by a call with a pointer to a handle (poise_model **) is the caller's and has a free function. So
//     are poise_string and poise_tokens. Everything else that comes out of Poise is borrowed. Free functions take NULL.
//  4. Lifetimes. What is borrowed from a model (poise_text, poise_bytes, poise_attributes, poise_blob, dims, parts) is valid
//     until the model is freed; what a callback is given, until it returns; what a session or stream lends, until the next call
//     with it that is not const. Sessions, tokenizers and writers keep what they need of a model and may outlive it.
//  5. Text. Text goes in as zero-terminated UTF-8. It comes out as poise_text, which is borrowed, has a length and may hold
//     zeros, or as poise_string, which is owned and has a zero behind it. Paths are the system's bytes.
//  6. Options. NULL stands for the usual ones. Otherwise begin with the initializer of the struct's name, so that `size` is
//     right: poise_convert_options options = POISE_CONVERT_OPTIONS_INIT. Later versions of Poise may add fields at the end.
//  7. Callbacks. They return 0 to go on; with anything else the call stops and returns POISE_CANCELLED, unless it says otherwise.
//     A callback must not free or change what the call works with, and must not leave by longjmp.
//  8. Threads. A const handle may be used by many threads at once, others by one at a time. Different handles are independent.
//     Calls may compute with several threads; callbacks run one at a time, but not always on the caller's thread.
//  9. Poise never prints, aborts or exits, and no C++ exception leaves it; running out of memory is POISE_OUT_OF_MEMORY. Mapped
//     files are memory: if another program cuts one off meanwhile, touching its bytes raises SIGBUS. POISE_IO_READ avoids that.
#ifndef POISE_H
#define POISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define POISE_ENUM : int32_t  // so that any number a C program passes is a value
#else
#define POISE_ENUM
#endif

// ---- Status and errors ------------------------------------------------------------------------------------------------------

typedef enum poise_status POISE_ENUM {
  POISE_OK = 0,
  POISE_INVALID_FILE = 1,   // the bytes of a file break a rule of its format
  POISE_UNSUPPORTED = 2,    // the file is fine, but this cannot be done with it
  POISE_NOT_FOUND = 3,      // a path, tensor, attribute or index does not exist
  POISE_BAD_ARGUMENT = 4,   // the caller asked for something that makes no sense
  POISE_IO = 5,             // the operating system refused or failed
  POISE_CANCELLED = 6,      // a callback asked to stop
  POISE_OUT_OF_MEMORY = 7,  // the system gave none
  POISE_INTERNAL = 8        // a bug in Poise
} poise_status;

#define POISE_NO_OFFSET UINT64_MAX

typedef struct poise_error {
  poise_status kind;
  uint64_t offset;     // in the file; POISE_NO_OFFSET when there is none
  char message[1024];  // one sentence or several lines; cut where it is longer, as is path
  char path[1024];     // the file that is concerned; may be empty
} poise_error;

// "0.1.0"
const char* poise_version(void);
// "invalid_file"; "unknown" for a number that is no status.
const char* poise_status_name(poise_status status);

// ---- Text, bytes and tokens -------------------------------------------------------------------------------------------------

// Borrowed. printf("%.*s", POISE_TEXT(name))
typedef struct poise_text {
  const char* data;
  size_t size;
} poise_text;
#define POISE_TEXT(text) (int)(text).size, (text).data

// Owned.
typedef struct poise_string {
  char* data;
  size_t size;
} poise_string;
void poise_string_free(poise_string* string);

// Borrowed.
typedef struct poise_bytes {
  const void* data;
  size_t size;
} poise_bytes;

// Owned.
typedef struct poise_tokens {
  int32_t* data;
  size_t count;
} poise_tokens;
void poise_tokens_free(poise_tokens* tokens);

// ---- Long work --------------------------------------------------------------------------------------------------------------

// Called often, after at most a few megabytes, with bytes done and to do and the tensor that is being worked on. report may be NULL.
typedef struct poise_progress {
  int (*report)(void* user, uint64_t done, uint64_t total, poise_text item);
  void* user;
} poise_progress;
#define POISE_PROGRESS_INIT \
  { NULL, NULL }

enum { POISE_WARNING = 0, POISE_FAULT = 1 };

// Something about a file that a caller should know.
typedef struct poise_finding {
  int32_t severity;  // POISE_WARNING, POISE_FAULT
  poise_text message;
  poise_text path;
  uint64_t offset;  // POISE_NO_OFFSET when there is none
} poise_finding;

// ---- Formats and element types ----------------------------------------------------------------------------------------------

typedef struct poise_format {
  poise_text name;         // "alt": what options call it
  poise_text description;  // one line
  poise_text extension;    // ".alt"; empty for directories
  int32_t readable;
  int32_t writable;
} poise_format;

// The formats by index from 0; POISE_NOT_FOUND behind the last.
poise_status poise_format_at(size_t index, poise_format* format, poise_error* error);

typedef enum poise_dtype POISE_ENUM {
  POISE_DTYPE_UNKNOWN = 0,  // a type that a file names and Poise does not know
  POISE_F64 = 1,
  POISE_F32 = 2,
  POISE_F16 = 3,
  POISE_BF16 = 4,
  POISE_F8_E4M3 = 5,
  POISE_F8_E5M2 = 6,
  POISE_F8_E4M3FNUZ = 7,
  POISE_F8_E5M2FNUZ = 8,
  POISE_F8_E8M0 = 9,
  POISE_F4_E2M1 = 10,
  POISE_COMPLEX64 = 11,
  POISE_COMPLEX128 = 12,
  POISE_I64 = 13,
  POISE_I32 = 14,
  POISE_I16 = 15,
  POISE_I8 = 16,
  POISE_U64 = 17,
  POISE_U32 = 18,
  POISE_U16 = 19,
  POISE_U8 = 20,
  POISE_BOOLEAN = 21,
  POISE_QINT8 = 22,
  POISE_QINT4 = 23
} poise_dtype;

typedef struct poise_dtype_info {
  poise_text name;  // "f16"
  uint32_t bits;    // of one element in a densely packed run
} poise_dtype_info;

poise_status poise_dtype_describe(poise_dtype dtype, poise_dtype_info* info, poise_error* error);

// ---- Attributes: a map from text to values ----------------------------------------------------------------------------------

typedef struct poise_attributes poise_attributes;

typedef enum poise_value_type POISE_ENUM {
  POISE_VALUE_NULL = 0,
  POISE_VALUE_BOOLEAN = 1,
  POISE_VALUE_INTEGER = 2,
  POISE_VALUE_REAL = 3,
  POISE_VALUE_TEXT = 4,
  POISE_VALUE_BYTES = 5,
  POISE_VALUE_ARRAY = 6,
  POISE_VALUE_MAP = 7
} poise_value_type;

typedef struct poise_attribute {
  poise_text key;
  poise_value_type type;
} poise_attribute;

poise_status poise_attributes_count(const poise_attributes* attributes, size_t* count, poise_error* error);
// In the order of the file. POISE_NOT_FOUND behind the last.
poise_status poise_attributes_at(const poise_attributes* attributes, size_t index, poise_attribute* attribute, poise_error* error);
// Each of these gives POISE_NOT_FOUND for a key that is absent and POISE_UNSUPPORTED, naming the type, for a value of another
// type or a number that does not fit. get_real takes integers, too.
poise_status poise_attributes_get_boolean(const poise_attributes* attributes, const char* key, int* value, poise_error* error);
poise_status poise_attributes_get_integer(const poise_attributes* attributes, const char* key, int64_t* value, poise_error* error);
poise_status poise_attributes_get_unsigned(const poise_attributes* attributes, const char* key, uint64_t* value, poise_error* error);
poise_status poise_attributes_get_real(const poise_attributes* attributes, const char* key, double* value, poise_error* error);
poise_status poise_attributes_get_text(const poise_attributes* attributes, const char* key, poise_text* value, poise_error* error);
poise_status poise_attributes_get_bytes(const poise_attributes* attributes, const char* key, poise_bytes* value, poise_error* error);
// One value of any type as JSON, or all of them with key NULL.
poise_status poise_attributes_get_json(const poise_attributes* attributes, const char* key, poise_string* json, poise_error* error);

// ---- Models -----------------------------------------------------------------------------------------------------------------

typedef struct poise_model poise_model;

enum { POISE_IO_MAP = 0, POISE_IO_READ = 1 };

typedef struct poise_open_options {
  size_t size;
  int32_t io;         // POISE_IO_MAP borrows the page cache; POISE_IO_READ copies, and lends no bytes
  const char* vocab;  // vocab.txt and merges.txt of a Tiny Llama: its vocabulary. Both or neither
  const char* merges;
} poise_open_options;
#define POISE_OPEN_OPTIONS_INIT \
  { sizeof(poise_open_options), POISE_IO_MAP, NULL, NULL }

// Opens a model file or directory of any format; reads its headers. *model is freed with poise_model_free.
poise_status poise_open(const char* path, const poise_open_options* options, poise_model** model, poise_error* error);
// The same for bytes in memory. They are borrowed: they must stay until the model and all that was made of it are freed. `name` stands
// for the path in errors, and its extension may help to find the format.
poise_status poise_open_memory(const void* data, size_t size, const char* name, const poise_open_options* options, poise_model** model, poise_error* error);
void poise_model_free(poise_model* model);

typedef struct poise_model_info {
  poise_text path;    // as it was given
  poise_text format;  // "alt-v2"
  uint64_t size;      // bytes of all files
  size_t tensors;
  size_t warnings;
  int32_t has_config;  // hyperparameters
  int32_t has_vocabulary;
} poise_model_info;

poise_status poise_model_describe(const poise_model* model, poise_model_info* info, poise_error* error);
// What a reader accepted although the format's canonical form looks different.
poise_status poise_model_warning(const poise_model* model, size_t index, poise_finding* warning, poise_error* error);

// Three maps: who made the model ("author", "license", ...), its configuration with all keys of its config.json and the hyperparameters
// that it leaves to defaults ("hidden_size", ...; empty when it has none), and what else the file attaches to it.
poise_status poise_model_card(const poise_model* model, const poise_attributes** card, poise_error* error);
poise_status poise_model_config(const poise_model* model, const poise_attributes** config, poise_error* error);
poise_status poise_model_attributes(const poise_model* model, const poise_attributes** attributes, poise_error* error);

typedef enum poise_vocabulary_kind POISE_ENUM {
  POISE_SENTENCEPIECE_BPE = 0,      // merges by score over characters
  POISE_SENTENCEPIECE_UNIGRAM = 1,  // listed; Poise does not encode with it
  POISE_BYTE_PAIR = 2               // merges by rank over bytes
} poise_vocabulary_kind;

typedef struct poise_vocabulary {
  int32_t kind;    // poise_vocabulary_kind
  int32_t bos_id;  // -1: none, as below
  int32_t eos_id;
  int32_t pad_id;
  int32_t unk_id;
  int32_t max_length;  // the longest sequence, in tokens; 0: not known
  int32_t add_dummy_prefix;
  int32_t remove_extra_whitespaces;
  size_t tokens;
  size_t merges;          // of POISE_BYTE_PAIR
  poise_text normalizer;  // "identity"
} poise_vocabulary;

typedef enum poise_token_type POISE_ENUM {
  POISE_TOKEN_NORMAL = 0,
  POISE_TOKEN_BYTE = 1,
  POISE_TOKEN_CONTROL = 2,
  POISE_TOKEN_UNKNOWN = 3,
  POISE_TOKEN_UNUSED = 4,
  POISE_TOKEN_BOS = 5,
  POISE_TOKEN_EOS = 6,
  POISE_TOKEN_PAD = 7,
  POISE_TOKEN_USER_DEFINED = 8
} poise_token_type;

typedef struct poise_token {
  poise_text text;
  float score;
  poise_token_type type;
} poise_token;

typedef struct poise_merge {
  poise_text left;
  poise_text right;
} poise_merge;

// POISE_NOT_FOUND without a vocabulary.
poise_status poise_model_vocabulary(const poise_model* model, poise_vocabulary* vocabulary, poise_error* error);
poise_status poise_vocabulary_token(const poise_model* model, size_t id, poise_token* token, poise_error* error);
poise_status poise_vocabulary_merge(const poise_model* model, size_t rank, poise_merge* merge, poise_error* error);

// ---- Tensors ----------------------------------------------------------------------------------------------------------------

typedef enum poise_layout POISE_ENUM {
  POISE_DENSE = 0,            // data: row-major
  POISE_SPARSE_CSR = 1,       // values, indices, indptr
  POISE_SPARSE_COO = 2,       // values, coords
  POISE_QUANTIZED_GROUP = 3,  // packed_weight, scales, zeros
  POISE_AFFINE = 4,           // data, with one scale for the whole tensor: qint8 and qint4
  POISE_LAYOUT_OTHER = 5      // named by layout_name; listed, not interpreted
} poise_layout;

// x = q * delta with q two's complement where min == max; else x = min + q * delta with q unsigned.
typedef struct poise_affine {
  float delta;
  float min;
  float max;
  int32_t packed;  // qint4: two codes a byte, the even element in the low half
} poise_affine;

typedef struct poise_blob poise_blob;

typedef struct poise_part {
  poise_text role;  // "data", "values", "scales", ...
  poise_dtype dtype;
  poise_text dtype_name;  // as the file spells it
  uint64_t size;          // decoded bytes
  poise_text file;        // that holds them; empty when it is not there
  uint64_t offset;        // in that file; POISE_NO_OFFSET without one
  uint64_t stored_size;   // bytes there
  poise_text encoding;    // "raw", "zstd", or what the file calls it
  poise_text digest;      // as the file spells it; empty when there is none
  const poise_blob* blob;
} poise_part;

typedef struct poise_tensor {
  size_t index;  // in the model
  poise_text name;
  poise_layout layout;
  poise_text layout_name;
  poise_dtype dtype;  // of the first part
  uint32_t rank;
  const uint64_t* dims;
  uint64_t elements;
  poise_affine affine;  // of POISE_AFFINE, else zeros
  const poise_attributes* attributes;
  size_t part_count;
  const poise_part* parts;  // in the order of the file
} poise_tensor;

// In the order of the file. Where a file does not tell the decoded size of a compressed part (zTensor 1.x), this decodes it once.
poise_status poise_tensor_at(const poise_model* model, size_t index, poise_tensor* tensor, poise_error* error);
poise_status poise_tensor_find(const poise_model* model, const char* name, poise_tensor* tensor, poise_error* error);
// The part with a role.
poise_status poise_tensor_part(const poise_tensor* tensor, const char* role, poise_part* part, poise_error* error);

// Elements [first, first + count) of the row-major dense tensor, whatever the floating-point type and the layout, as POISE_F32, POISE_F16
// or POISE_BF16. `size` is that of `out` in bytes: count times the type's. POISE_UNSUPPORTED for integers, booleans and complex
// numbers, and for layouts that Poise does not decode. A sparse tensor is read anew by each call: take as much at once as fits.
poise_status poise_tensor_decode(const poise_model* model, size_t index, poise_dtype dtype, uint64_t first, uint64_t count, void* out, size_t size,
                                 poise_error* error);

// Borrows all bytes of a part: what the file holds, copied nowhere, not aligned beyond what the format says. POISE_UNSUPPORTED
// when they cannot be lent: compressed, absent, or opened with POISE_IO_READ.
poise_status poise_blob_map(const poise_blob* blob, poise_bytes* bytes, poise_error* error);
// Copies decoded bytes [offset, offset + size).
poise_status poise_blob_read(const poise_blob* blob, uint64_t offset, void* out, size_t size, poise_error* error);

// ---- Verify, hash, convert --------------------------------------------------------------------------------------------------

typedef struct poise_verify_options {
  size_t size;
  int32_t io;
  poise_progress progress;
} poise_verify_options;
#define POISE_VERIFY_OPTIONS_INIT \
  { sizeof(poise_verify_options), POISE_IO_MAP, POISE_PROGRESS_INIT }

typedef struct poise_verify_report {
  char format[64];  // "alt-v2"; empty when the file could not be opened
  uint64_t tensors;
  uint64_t bytes;    // decoded bytes that were looked at
  uint64_t digests;  // that were checked
  uint64_t faults;   // the file is good when there are none
  uint64_t warnings;
} poise_verify_report;

// Structure, digests and every value. Faults of the file are no failure of the call: each is handed to on_finding (may be NULL)
// with `user`, in the order of the file, when all have been found. report may be NULL.
poise_status poise_verify(const char* path, const poise_verify_options* options, int (*on_finding)(void* user, const poise_finding* finding), void* user,
                          poise_verify_report* report, poise_error* error);

typedef struct poise_part_hash {
  poise_text tensor;
  poise_text role;
  poise_text sha256;  // 64 lower-case hexadecimal digits
} poise_part_hash;

typedef struct poise_model_hash {
  char sha256[65];    // of the model: the same for the same parts in any format
  char content[128];  // zTensor 2's content digest; empty for other formats
} poise_model_hash;

// SHA-256 of every part over decoded bytes, handed to on_part (may be NULL) with `user`, sorted by tensor and role. progress and
// hash may be NULL.
poise_status poise_hash(const poise_model* model, const poise_progress* progress, int (*on_part)(void* user, const poise_part_hash* part), void* user,
                        poise_model_hash* hash, poise_error* error);

// How formats store parts. A format refuses what it does not have.
typedef struct poise_storage {
  const char* dialect;  // alt: "alt.c"; NULL: the canonical form
  int32_t zstd_level;   // 0: not compressed
  const char* digest;   // "sha256", "xxh3", "crc32c", "none"; NULL: the format's own choice
  uint64_t align;       // where parts begin: multiples of this power of two; 0: the format's own choice
  uint64_t shard_size;  // bytes; 0: one file
} poise_storage;
#define POISE_STORAGE_INIT \
  { NULL, 0, NULL, 0, 0 }

// Tensors that match the pattern become this type.
typedef struct poise_keep {
  const char* pattern;
  const char* type;  // "f32", "f16", "bf16", or a type as in `quantize`
} poise_keep;

// Who made a model. NULL: as it is.
typedef struct poise_card {
  const char* model_type;
  const char* base_model;
  const char* author;
  const char* created_at;     // YYYY-MM-DD
  const char* last_modified;  // YYYY-MM-DD
  const char* license;
  const char* uuid;
} poise_card;
#define POISE_CARD_INIT \
  { NULL, NULL, NULL, NULL, NULL, NULL, NULL }

// What `poise convert` can be told. Patterns are those of a shell: * ? [a-z].
typedef struct poise_convert_options {
  size_t size;
  const char* format;      // NULL: by the output's extension
  int32_t overwrite;       // replace an existing output
  int32_t io;              // how the input is read
  const char* dtype;       // "f32", "f16", "bf16": for floating-point tensors; NULL: as they are
  const char* quantize;    // "qint8", "qint4" (":range", ":mse"), "group8", "group4" (":SIZE"); excludes dtype
  const poise_keep* keep;  // goes before dtype and quantize; the first that matches counts
  size_t keep_count;
  const char* sparse;   // "csr", "coo"
  double min_sparsity;  // the part of the elements that has to be zero for that
  const char* const* only;
  size_t only_count;
  const char* const* skip;
  size_t skip_count;
  const char* vocab;  // as in poise_open_options
  const char* merges;
  poise_card card;  // fields that replace the input's
  poise_storage storage;
  poise_progress progress;
  int32_t verify;  // compare the digests of the input with the bytes that are taken; 0: trust them
} poise_convert_options;
// clang-format off
#define POISE_CONVERT_OPTIONS_INIT                                                                                                       \
  { sizeof(poise_convert_options), NULL, 0, POISE_IO_MAP, NULL, NULL, NULL, 0, NULL, 0.5, NULL, 0, NULL, 0, NULL, NULL, POISE_CARD_INIT, \
    POISE_STORAGE_INIT, POISE_PROGRESS_INIT, 1 }
// clang-format on

typedef struct poise_convert_report {
  char format[64];   // that was written
  uint64_t tensors;  // written
  uint64_t skipped;
  uint64_t bytes_in;
  uint64_t bytes_out;
  double seconds;
  poise_string details;  // owned. JSON: {"warnings": [..], "losses": [..], "casts": [{..}], "quantized": [{..}]}
} poise_convert_report;

// The output appears whole or not at all: not when what is taken of the input does not have the digest that the input says
// (POISE_INVALID_FILE). report may be NULL; otherwise poise_string_free(&report->details).
poise_status poise_convert(const char* input, const char* output, const poise_convert_options* options, poise_convert_report* report, poise_error* error);

// ---- Writing ----------------------------------------------------------------------------------------------------------------
//
// Plan the file, then finish it: tensors are asked for when poise_writer_finish runs. A writer that is freed before that leaves nothing.

typedef struct poise_writer poise_writer;

typedef struct poise_writer_options {
  size_t size;
  int32_t overwrite;
  poise_storage storage;
  poise_progress progress;
} poise_writer_options;
#define POISE_WRITER_OPTIONS_INIT \
  { sizeof(poise_writer_options), 0, POISE_STORAGE_INIT, POISE_PROGRESS_INIT }

typedef struct poise_tensor_plan {
  size_t size;
  const char* name;
  poise_dtype dtype;
  uint32_t rank;
  const uint64_t* dims;
  poise_affine affine;  // of POISE_QINT8 and POISE_QINT4 (packed: two codes a byte), which need one; else ignored
  // Fills bytes [offset, offset + size) of the tensor. Asked for in any order, and for the same bytes more than once where a
  // format has to see them before it writes them.
  int (*fill)(void* user, uint64_t offset, void* out, size_t size);
  void* user;
} poise_tensor_plan;
#define POISE_TENSOR_PLAN_INIT \
  { sizeof(poise_tensor_plan), NULL, POISE_DTYPE_UNKNOWN, 0, NULL, {0.0f, 0.0f, 0.0f, 0}, NULL, NULL }

// `format` NULL: by the path's extension. Nothing is written yet. An existing file is refused without options.overwrite.
poise_status poise_writer_create(const char* path, const char* format, const poise_writer_options* options, poise_writer** writer, poise_error* error);
// Card, hyperparameters, vocabulary and attributes of a model, in place of what was set before.
poise_status poise_writer_set_metadata(poise_writer* writer, const poise_model* from, poise_error* error);
// Fields that replace what was set before.
poise_status poise_writer_set_card(poise_writer* writer, const poise_card* card, poise_error* error);
// JSON objects: a config.json, which is kept whole and of a known model_type has to have the hyperparameters; attributes, each of which
// replaces one of its key.
poise_status poise_writer_set_config(poise_writer* writer, const char* json, poise_error* error);
poise_status poise_writer_set_attributes(poise_writer* writer, const char* json, poise_error* error);
// Begins a vocabulary without tokens in place of the one before; the counts in it are ignored. Tokens get ids in the order in which they
// are added, merges likewise.
poise_status poise_writer_set_vocabulary(poise_writer* writer, const poise_vocabulary* vocabulary, poise_error* error);
poise_status poise_writer_add_token(poise_writer* writer, const poise_token* token, poise_error* error);
poise_status poise_writer_add_merge(poise_writer* writer, const poise_merge* merge, poise_error* error);
// A tensor, dense or affine. Everything but plan->user is copied.
poise_status poise_writer_add_tensor(poise_writer* writer, const poise_tensor_plan* plan, poise_error* error);
// Another model's tensor as it stands, whatever its layout. The writer keeps what it needs of it.
poise_status poise_writer_copy_tensor(poise_writer* writer, const poise_model* from, size_t index, poise_error* error);
// Writes the file, which appears whole or not at all. Afterwards, done or failed, the writer can only be freed. A fill that returns
// anything but 0 makes this POISE_CANCELLED.
poise_status poise_writer_finish(poise_writer* writer, poise_error* error);
void poise_writer_free(poise_writer* writer);

// ---- Text to tokens and back ------------------------------------------------------------------------------------------------

typedef struct poise_tokenizer poise_tokenizer;

poise_status poise_tokenizer_create(const poise_model* model, poise_tokenizer** tokenizer, poise_error* error);
void poise_tokenizer_free(poise_tokenizer* tokenizer);
// Without BOS or EOS. `text` has `size` bytes; malformed UTF-8 reads as U+FFFD. *tokens is freed with poise_tokens_free.
poise_status poise_tokenizer_encode(const poise_tokenizer* tokenizer, const char* text, size_t size, poise_tokens* tokens, poise_error* error);
// *text is freed with poise_string_free.
poise_status poise_tokenizer_decode(const poise_tokenizer* tokenizer, const int32_t* tokens, size_t count, poise_string* text, poise_error* error);

// Decodes token by token. The pieces put together are the text of all tokens; each ends where a character ends.
typedef struct poise_stream poise_stream;

// The tokenizer must stay until the stream is freed.
poise_status poise_stream_create(const poise_tokenizer* tokenizer, poise_stream** stream, poise_error* error);
void poise_stream_free(poise_stream* stream);
poise_status poise_stream_add(poise_stream* stream, int32_t token, poise_text* text, poise_error* error);
// What was held back. The stream then starts anew.
poise_status poise_stream_finish(poise_stream* stream, poise_text* text, poise_error* error);

// ---- Running ----------------------------------------------------------------------------------------------------------------

typedef struct poise_session poise_session;

typedef struct poise_session_options {
  size_t size;
  uint32_t threads;  // at most; 0: one per processor
  uint64_t context;  // positions at most; 0: as many as the model was made for
} poise_session_options;
#define POISE_SESSION_OPTIONS_INIT \
  { sizeof(poise_session_options), 0, 0 }

// POISE_UNSUPPORTED for models that Poise does not run, POISE_INVALID_FILE when hyperparameters, vocabulary and tensors disagree.
poise_status poise_session_create(const poise_model* model, const poise_session_options* options, poise_session** session, poise_error* error);
void poise_session_free(poise_session* session);

typedef struct poise_session_info {
  size_t vocabulary_size;  // the number of logits; the tokenizer may know fewer tokens
  size_t context;          // positions there is room for
  size_t position;         // tokens fed so far
  int32_t has_tokenizer;
} poise_session_info;

poise_status poise_session_describe(const poise_session* session, poise_session_info* info, poise_error* error);
// The tokens of a text behind BOS, where the vocabulary has one. *tokens is freed with poise_tokens_free.
poise_status poise_session_prompt(const poise_session* session, const char* text, size_t size, poise_tokens* tokens, poise_error* error);
// Forgets all tokens.
poise_status poise_session_reset(poise_session* session, poise_error* error);
// Appends tokens. POISE_BAD_ARGUMENT, before anything is computed, for one that the model does not have or when they do not fit.
poise_status poise_session_feed(poise_session* session, const int32_t* tokens, size_t count, poise_error* error);
// The scores of the next token, by id. POISE_BAD_ARGUMENT before the first token.
poise_status poise_session_logits(const poise_session* session, const float** logits, size_t* count, poise_error* error);

typedef struct poise_generate_options {
  size_t size;
  uint64_t max_tokens;
  uint64_t seed;
  float temperature;  // 0: always the best token
  float top_p;        // among the fewest that together have this probability
  int32_t stop_id;    // ends the text; -1: the vocabulary's EOS
  int64_t top_k;      // among the k best; 0: all
} poise_generate_options;
#define POISE_GENERATE_OPTIONS_INIT \
  { sizeof(poise_generate_options), 128, 0, 0.0f, 1.0f, -1, 0 }

typedef enum poise_stop_reason POISE_ENUM {
  POISE_STOP_END_OF_TEXT = 0,
  POISE_STOP_MAX_TOKENS = 1,
  POISE_STOP_CONTEXT_FULL = 2,
  POISE_STOP_CALLBACK = 3
} poise_stop_reason;

typedef struct poise_generation {
  size_t tokens;  // that were generated, with the one that ended the text
  poise_stop_reason reason;
  int32_t last;  // the last of them, or -1; it has not been fed: feed it to go on
} poise_generation;

// Continues what has been fed, handing each token to on_token (may be NULL) with `user`. Not 0 ends the generation, and the call
// returns POISE_OK. generation may be NULL.
poise_status poise_session_generate(poise_session* session, const poise_generate_options* options, int (*on_token)(void* user, int32_t token), void* user,
                                    poise_generation* generation, poise_error* error);
// Starts anew, feeds all tokens, and fills out[count - 1] with the natural logarithm of the probability of each but the first.
poise_status poise_session_log_probabilities(poise_session* session, const int32_t* tokens, size_t count, double* out, poise_error* error);

#ifdef __cplusplus
}
#endif

#endif
