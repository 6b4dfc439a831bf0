// poise.h is Poise's interface for C programs. Poise opens, checks, converts, writes and runs files of model weights.
//
//   poise_error error;
//   poise_model* model = NULL;
//   if (poise_open("model.alt", NULL, &model, &error) != POISE_OK) fprintf(stderr, "%s\n", error.message);
//   poise_model_free(model);
//
//  1. Status. Every call that can fail returns a poise_status: POISE_OK, which is 0, or the kind of failure. Calls that
//     succeed write their outputs; calls that fail leave them alone. Only the contents of a buffer that a failed call
//     was filling are undefined. In a comment, "POISE_NOT_FOUND for a missing key" means that the call returns
//     POISE_NOT_FOUND in this case.
//  2. Errors. The last parameter of a call that can fail is the caller's poise_error, or NULL. The call overwrites it:
//     with kind, message, path and offset of the failure, or with POISE_OK and empty texts after success. Poise keeps
//     no error anywhere else. Any call can return POISE_OUT_OF_MEMORY and, if Poise has a bug, POISE_INTERNAL. Calls
//     that read or write files can also return POISE_IO.
//  3. NULL. A pointer must not be NULL unless its call defines what NULL means. Otherwise the call returns
//     POISE_BAD_ARGUMENT, and the message names the parameter. Free functions take NULL.
//  4. Ownership. A handle that a call makes (poise_model **) belongs to the caller, who frees it with its free
//     function. The same holds for poise_string and poise_tokens. Everything else that Poise returns is borrowed.
//  5. Lifetimes. Objects borrowed from a model (const poise_tensor *, const poise_part *, const poise_attributes *,
//     poise_text, poise_bytes, dims) are valid until the model is freed. Arguments of a callback are valid until it
//     returns. Objects borrowed from a session, batch or stream are valid until the next call that takes this handle
//     as a pointer to a non-const object. Sessions, batches, tokenizers and writers keep what they need of a model and
//     may outlive it.
//  6. Structs. A struct whose first field is `size` may grow at its end. The caller initializes it with the macro that
//     has its name, which sets `size`: poise_tensor_info info = POISE_TENSOR_INFO_INIT. Poise fills in fields up to the
//     end of the caller's struct. An older library sets the fields that it does not know to 0. In a struct that the
//     caller fills in, these fields must be 0. POISE_BAD_ARGUMENT for other values of them, for a size below that of
//     the struct's first version or above 4096, and for `reserved` that is not 0. In a callback, `size` is the size of
//     the struct that Poise passes. Structs without `size`, such as poise_text and poise_error, stay as they are.
//  7. Enums. Later versions may add numbers to an enum, and older programs may receive them. A program should treat a
//     number that it does not know as the enum's UNKNOWN or OTHER, if the enum has one of these.
//  8. Text. Text goes in as zero-terminated UTF-8, or as UTF-8 with a length. It comes out as poise_text, which is
//     borrowed, has a length and may hold zeros, or as poise_string, which is owned and ends with a zero that `size`
//     does not count. Paths are bytes, as the operating system takes them.
//  9. Options. NULL means the defaults: those of the struct's initializer.
// 10. Callbacks. They return 0 to go on; after any other number the call stops and returns POISE_CANCELLED, unless the
//     call's comment states otherwise. Poise passes `user` on and does not look at it. A callback must not free or
//     change the objects of the call, and must not leave by longjmp.
// 11. Threads. Many threads may use a const handle at once; one thread at a time may use any other handle. Different
//     handles are independent. Calls may compute with several threads; callbacks run one at a time, but not always on
//     the caller's thread.
// 12. Poise never prints, aborts or exits, and no C++ exception leaves it. Mapped files are memory: if another program
//     truncates one, reading the missing bytes raises SIGBUS. POISE_IO_READ avoids this. If the system refuses a thread
//     (`ulimit -u`), calls return POISE_IO. But oneTBB, which runs Poise's threads, may end the program if it gets only
//     some of its threads: leave room for one per processor.
#ifndef POISE_H
#define POISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define POISE_ENUM : int32_t  // so that every number from a C program is a value of the enum
#else
#define POISE_ENUM
#endif

// These numbers are the version of this header; poise_version() returns that of the library.
#define POISE_VERSION_MAJOR 0
#define POISE_VERSION_MINOR 2
#define POISE_VERSION_PATCH 0

// ---- Status and errors -----------------------------------------------------------------------------------

typedef enum poise_status POISE_ENUM {
  POISE_OK = 0,
  POISE_INVALID_FILE = 1,   // the bytes of a file break a rule of its format
  POISE_UNSUPPORTED = 2,    // the file is fine, but this cannot be done with it
  POISE_NOT_FOUND = 3,      // a path, tensor, attribute or index does not exist
  POISE_BAD_ARGUMENT = 4,   // the caller asked for something that makes no sense
  POISE_IO = 5,             // the operating system refused or failed
  POISE_CANCELLED = 6,      // a callback asked to stop
  POISE_OUT_OF_MEMORY = 7,  // the system has no memory left
  POISE_INTERNAL = 8        // a bug in Poise
} poise_status;

#define POISE_NO_OFFSET UINT64_MAX

// Describes a failure. Needs no initializer.
typedef struct poise_error {
  poise_status kind;
  uint64_t offset;     // in the file; POISE_NO_OFFSET when there is none
  char message[1024];  // one sentence or several lines; cut if too long, like path
  char path[1024];     // the file concerned; may be empty
} poise_error;

// Returns the version of the library, such as "0.2.0". The text is static.
const char* poise_version(void);
// Returns the name of a status, such as "invalid_file"; "unknown" for a number that is not a status. The text is
// static.
const char* poise_status_name(poise_status status);

// ---- Text, bytes and tokens ------------------------------------------------------------------------------

// Borrows a text. In texts from Poise `data` is never NULL. printf("%.*s", POISE_TEXT(name)) prints one.
typedef struct poise_text {
  const char* data;
  size_t size;
} poise_text;
#define POISE_TEXT(text) (int)(text).size, (text).data

// Holds a text that the caller owns.
typedef struct poise_string {
  char* data;
  size_t size;
} poise_string;
// Frees the text and sets both fields to 0, so that a second call does nothing.
void poise_string_free(poise_string* string);

// Borrows bytes.
typedef struct poise_bytes {
  const void* data;
  size_t size;
} poise_bytes;

// Holds tokens that the caller owns.
typedef struct poise_tokens {
  int32_t* data;
  size_t count;
} poise_tokens;
// Frees the tokens and sets both fields to 0.
void poise_tokens_free(poise_tokens* tokens);

// ---- Long work -------------------------------------------------------------------------------------------

typedef struct poise_progress_event {
  size_t size;
  uint64_t done;    // bytes
  uint64_t total;   // bytes
  poise_text item;  // the tensor or file being processed
} poise_progress_event;

// Long calls call `report` after every few megabytes. It may be NULL.
typedef struct poise_progress {
  int (*report)(void* user, const poise_progress_event* event);
  void* user;
} poise_progress;
#define POISE_PROGRESS_INIT \
  { NULL, NULL }

typedef enum poise_severity POISE_ENUM {
  POISE_WARNING = 0,  // the file can be used
  POISE_FAULT = 1     // the file breaks a rule
} poise_severity;

// Describes a fault of a file, or a warning about it, with its place.
typedef struct poise_finding {
  size_t size;
  poise_text message;
  poise_text path;
  uint64_t offset;  // in that file; POISE_NO_OFFSET when there is none
  poise_severity severity;
  int32_t reserved;
} poise_finding;
#define POISE_FINDING_INIT \
  { sizeof(poise_finding), {NULL, 0}, {NULL, 0}, POISE_NO_OFFSET, POISE_WARNING, 0 }

// ---- Formats and element types ---------------------------------------------------------------------------

typedef struct poise_format {
  size_t size;
  poise_text name;         // the name that options take: "alt"
  poise_text description;  // one line
  poise_text extension;    // ".alt"; empty for directories
  int32_t readable;        // 0 or 1
  int32_t writable;
} poise_format;
#define POISE_FORMAT_INIT \
  { sizeof(poise_format), {NULL, 0}, {NULL, 0}, {NULL, 0}, 0, 0 }

// Gives the format at an index from 0. The texts are static. POISE_NOT_FOUND past the last.
poise_status poise_format_at(size_t index, poise_format* format, poise_error* error);

typedef enum poise_dtype POISE_ENUM {
  POISE_DTYPE_UNKNOWN = 0,  // Poise does not know the type that the file names
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
  size_t size;
  poise_text name;  // "f16"
  uint64_t bits;    // the bits of one element in a densely packed run
} poise_dtype_info;
#define POISE_DTYPE_INFO_INIT \
  { sizeof(poise_dtype_info), {NULL, 0}, 0 }

// Describes an element type. Its name is static. POISE_BAD_ARGUMENT for POISE_DTYPE_UNKNOWN and numbers that are not an
// element type.
poise_status poise_dtype_describe(poise_dtype dtype, poise_dtype_info* info, poise_error* error);

// ---- Attributes: a map from text to values ---------------------------------------------------------------

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

// Gives the number of attributes.
poise_status poise_attributes_count(const poise_attributes* attributes, size_t* count, poise_error* error);
// Gives the attribute at an index from 0, in the order of the file. POISE_NOT_FOUND past the last.
poise_status poise_attributes_at(const poise_attributes* attributes, size_t index, poise_text* key,
                                 poise_value_type* type, poise_error* error);
// These give the value of a key. POISE_NOT_FOUND for a missing key; POISE_UNSUPPORTED, naming the type, for a value of
// another type or a number that does not fit. get_real takes integers, too. Text and bytes are borrowed from the owner
// of the attributes.
poise_status poise_attributes_get_boolean(const poise_attributes* attributes, const char* key, int* value,
                                          poise_error* error);
poise_status poise_attributes_get_integer(const poise_attributes* attributes, const char* key, int64_t* value,
                                          poise_error* error);
poise_status poise_attributes_get_unsigned(const poise_attributes* attributes, const char* key, uint64_t* value,
                                           poise_error* error);
poise_status poise_attributes_get_real(const poise_attributes* attributes, const char* key, double* value,
                                       poise_error* error);
poise_status poise_attributes_get_text(const poise_attributes* attributes, const char* key, poise_text* value,
                                       poise_error* error);
poise_status poise_attributes_get_bytes(const poise_attributes* attributes, const char* key, poise_bytes* value,
                                        poise_error* error);
// Gives one value of any type as JSON; all attributes as one object if `key` is NULL. *json is freed with
// poise_string_free. POISE_NOT_FOUND for a missing key.
poise_status poise_attributes_get_json(const poise_attributes* attributes, const char* key, poise_string* json,
                                       poise_error* error);

// ---- Models ----------------------------------------------------------------------------------------------

typedef struct poise_model poise_model;

typedef enum poise_io POISE_ENUM {
  POISE_IO_MAP = 0,  // maps files into memory and borrows their bytes; copies them where the system cannot map a file
  POISE_IO_READ = 1  // copies bytes of files; poise_part_map returns POISE_UNSUPPORTED
} poise_io;

typedef struct poise_open_options {
  size_t size;
  const char* vocab;  // paths of a Tiny Llama's vocab.txt and merges.txt; both, or NULL for both
  const char* merges;
  poise_io io;
  int32_t reserved;
} poise_open_options;
#define POISE_OPEN_OPTIONS_INIT \
  { sizeof(poise_open_options), NULL, NULL, POISE_IO_MAP, 0 }

// Opens a model file or directory of any format; reads its headers. *model is freed with poise_model_free.
// POISE_NOT_FOUND for a path that does not exist, POISE_INVALID_FILE for a file that breaks a rule of its format,
// POISE_UNSUPPORTED for a file that Poise cannot read, POISE_BAD_ARGUMENT for a path that is neither file nor
// directory.
poise_status poise_open(const char* path, const poise_open_options* options, poise_model** model, poise_error* error);
// Opens a model file that is in memory. The bytes are borrowed: they must stay until the model and all objects made
// from it are freed. `data` may be NULL when `size` is 0. Errors give `name` as the path, and its extension may help to
// find the format.
poise_status poise_open_memory(const void* data, size_t size, const char* name, const poise_open_options* options,
                               poise_model** model, poise_error* error);
// Opens a file on a server by https:// or http://, or a repository of the Hugging Face Hub or one of its files by
// hf://ORG/NAME[@REVISION][/FILE] (docs/remote.md). Reads headers; later calls request the bytes that they need. Fails
// as poise_open does, with POISE_IO when the server cannot be reached or refuses access, and with POISE_BAD_ARGUMENT
// for other URLs.
poise_status poise_open_url(const char* url, const poise_open_options* options, poise_model** model,
                            poise_error* error);
void poise_model_free(poise_model* model);

typedef struct poise_model_info {
  size_t size;
  poise_text path;     // as it was given
  poise_text format;   // "alt-v2"
  uint64_t file_size;  // bytes of all files
  size_t tensors;
  size_t warnings;
  int32_t has_config;      // 1 if Poise knows the hyperparameters, else 0
  int32_t has_vocabulary;  // 0 or 1
} poise_model_info;
#define POISE_MODEL_INFO_INIT \
  { sizeof(poise_model_info), {NULL, 0}, {NULL, 0}, 0, 0, 0, 0, 0 }

// Describes a model.
poise_status poise_model_describe(const poise_model* model, poise_model_info* info, poise_error* error);
// Gives the warning at an index from 0: a deviation from the format's canonical form that the reader accepted.
// POISE_NOT_FOUND past the last.
poise_status poise_model_warning(const poise_model* model, size_t index, poise_finding* warning, poise_error* error);

// Each call gives a map. The card states who made the model ("author", "license", ...). The configuration has all keys
// of config.json, and default values for missing hyperparameters ("hidden_size", ...). It is empty when the model has
// no configuration. The attributes are the file's other keys and values.
poise_status poise_model_card(const poise_model* model, const poise_attributes** card, poise_error* error);
poise_status poise_model_config(const poise_model* model, const poise_attributes** config, poise_error* error);
poise_status poise_model_attributes(const poise_model* model, const poise_attributes** attributes, poise_error* error);

typedef enum poise_vocabulary_kind POISE_ENUM {
  POISE_SENTENCEPIECE_BPE = 0,      // merges by score over characters
  POISE_SENTENCEPIECE_UNIGRAM = 1,  // the segmentation with the largest sum of scores
  POISE_BYTE_PAIR = 2,              // merges by rank over bytes
  POISE_PIPELINE = 3                // the steps of a tokenizer.json; poise_writer_set_vocabulary refuses this kind
} poise_vocabulary_kind;

typedef struct poise_vocabulary {
  size_t size;
  poise_vocabulary_kind kind;
  int32_t max_length;  // the longest sequence, in tokens; 0: unknown
  int32_t bos_id;      // -1: none; the same for the next three
  int32_t eos_id;
  int32_t pad_id;
  int32_t unk_id;
  int32_t add_dummy_prefix;          // 0 or 1
  int32_t remove_extra_whitespaces;  // 0 or 1
  size_t tokens;
  size_t merges;          // only for POISE_BYTE_PAIR and POISE_PIPELINE
  poise_text normalizer;  // SentencePiece's normalizer: "identity", "nmt_nfkc", ...
} poise_vocabulary;
#define POISE_VOCABULARY_INIT                                                                           \
  {                                                                                                     \
    sizeof(poise_vocabulary), POISE_SENTENCEPIECE_BPE, 0, -1, -1, -1, -1, 0, 0, 0, 0, { "identity", 8 } \
  }

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
  size_t size;
  poise_text text;
  float score;
  poise_token_type type;
} poise_token;
#define POISE_TOKEN_INIT \
  { sizeof(poise_token), {"", 0}, 0.0f, POISE_TOKEN_NORMAL }

typedef struct poise_merge {
  poise_text left;
  poise_text right;
} poise_merge;

// These calls give the vocabulary, a token and a merge. POISE_NOT_FOUND without a vocabulary, and past the last token
// or merge.
poise_status poise_model_vocabulary(const poise_model* model, poise_vocabulary* vocabulary, poise_error* error);
poise_status poise_vocabulary_token(const poise_model* model, size_t id, poise_token* token, poise_error* error);
poise_status poise_vocabulary_merge(const poise_model* model, size_t rank, poise_merge* merge, poise_error* error);

// ---- Tensors ---------------------------------------------------------------------------------------------

// A poise_tensor is a tensor of a model, a poise_part an array of bytes that belongs to a tensor. Both are borrowed,
// and the same call gives the same pointer every time.
typedef struct poise_tensor poise_tensor;
typedef struct poise_part poise_part;

// Gives the tensor at an index from 0, in the order of the file. POISE_NOT_FOUND past the last.
poise_status poise_tensor_at(const poise_model* model, size_t index, const poise_tensor** tensor, poise_error* error);
// Finds a tensor by Poise's name of it, or by its name in the file (GGUF's "blk.0.attn_q.weight"). POISE_NOT_FOUND for
// a name that no tensor has, and for a name in the file that several tensors share.
poise_status poise_tensor_find(const poise_model* model, const char* name, const poise_tensor** tensor,
                               poise_error* error);

// Names a layout, with the roles of its parts.
typedef enum poise_layout POISE_ENUM {
  POISE_DENSE = 0,            // data, row-major
  POISE_SPARSE_CSR = 1,       // values, indices, indptr
  POISE_SPARSE_COO = 2,       // values, coords
  POISE_QUANTIZED_GROUP = 3,  // packed_weight, scales, zeros
  POISE_AFFINE = 4,           // data, with one scale for the whole tensor: qint8 and qint4
  POISE_LAYOUT_OTHER = 5      // another layout, named by layout_name; Poise decodes some of these
} poise_layout;

// Describes how codes q stand for numbers x. If min == max, x = q * delta with q two's complement; else x = min + q *
// delta with q unsigned.
typedef struct poise_affine {
  float delta;
  float min;
  float max;
  int32_t packed;  // qint4: two codes a byte, the even element in the low half
} poise_affine;

typedef struct poise_tensor_info {
  size_t size;
  size_t index;  // the place in the model
  poise_text name;
  poise_text layout_name;
  poise_layout layout;
  poise_dtype dtype;     // the type of `data` in a dense tensor, else of the first part
  const uint64_t* dims;  // `rank` lengths
  size_t rank;
  uint64_t elements;
  size_t parts;
  const poise_attributes* attributes;
  poise_affine affine;  // only for POISE_AFFINE, else zeros
} poise_tensor_info;
#define POISE_TENSOR_INFO_INIT                                                                                   \
  {                                                                                                              \
    sizeof(poise_tensor_info), 0, {NULL, 0}, {NULL, 0}, POISE_DENSE, POISE_DTYPE_UNKNOWN, NULL, 0, 0, 0, NULL, { \
      0.0f, 0.0f, 0.0f, 0                                                                                        \
    }                                                                                                            \
  }

// Describes a tensor without reading its bytes.
poise_status poise_tensor_describe(const poise_tensor* tensor, poise_tensor_info* info, poise_error* error);

// Decodes elements [first, first + count) of the row-major dense tensor, from any floating-point type and layout, as
// POISE_F32, POISE_F16 or POISE_BF16. `size` is the size of `out` in bytes: count times the size of `dtype`. `out` may
// be NULL when `size` is 0. POISE_BAD_ARGUMENT for other types, for another size, and for elements outside the tensor;
// POISE_UNSUPPORTED for integers, booleans and complex numbers, and for layouts that Poise does not decode;
// POISE_INVALID_FILE for stored bytes that break a rule. Each call reads a sparse tensor again from its start: read
// many elements per call.
poise_status poise_tensor_decode(const poise_tensor* tensor, poise_dtype dtype, uint64_t first, uint64_t count,
                                 void* out, size_t size, poise_error* error);

// Gives the part at an index from 0, in the order of the file. POISE_NOT_FOUND past the last.
poise_status poise_tensor_part_at(const poise_tensor* tensor, size_t index, const poise_part** part,
                                  poise_error* error);
// Gives the part with a role: "data", "values", "scales", ... POISE_NOT_FOUND if there is none.
poise_status poise_tensor_part(const poise_tensor* tensor, const char* role, const poise_part** part,
                               poise_error* error);

typedef enum poise_encoding POISE_ENUM {
  POISE_ENCODING_ABSENT = 0,  // no file has the bytes: Poise computes them, or their file is missing
  POISE_ENCODING_RAW = 1,     // the part is in the file, unchanged
  POISE_ENCODING_OTHER = 2    // described by encoding_name: "zstd", "zt.zstd-seekable/1", "big-endian", ...
} poise_encoding;

typedef enum poise_digest_algorithm POISE_ENUM {
  POISE_DIGEST_USUAL = 0,  // for writing: the format's own choice
  POISE_DIGEST_NONE = 1,
  POISE_DIGEST_SHA256 = 2,
  POISE_DIGEST_XXH3 = 3,
  POISE_DIGEST_CRC32C = 4,
  POISE_DIGEST_OTHER = 5  // for reading: Poise does not know the algorithm and does not check the digest
} poise_digest_algorithm;

typedef struct poise_part_info {
  size_t size;
  poise_text role;
  poise_dtype dtype;
  poise_encoding encoding;
  poise_text dtype_name;     // Poise's name; for an unknown type the file's
  poise_text encoding_name;  // "raw", "zstd", "raw, big-endian", ...; empty for POISE_ENCODING_ABSENT
  uint64_t decoded_size;     // bytes
  uint64_t stored_size;      // bytes in the file; 0 for POISE_ENCODING_ABSENT
  poise_text file;           // the file with these bytes; empty for POISE_ENCODING_ABSENT
  uint64_t offset;           // in that file; POISE_NO_OFFSET for POISE_ENCODING_ABSENT
  poise_text digest;         // in the file's spelling; empty for POISE_DIGEST_NONE
  poise_digest_algorithm digest_algorithm;
  int32_t reserved;
} poise_part_info;
#define POISE_PART_INFO_INIT                                                                                    \
  {                                                                                                             \
    sizeof(poise_part_info), {NULL, 0}, POISE_DTYPE_UNKNOWN, POISE_ENCODING_ABSENT, {NULL, 0}, {NULL, 0}, 0, 0, \
        {NULL, 0}, POISE_NO_OFFSET, {NULL, 0}, POISE_DIGEST_NONE, 0                                             \
  }

// Describes a part. If a file lacks the decoded size of a compressed part (zTensor 1.x), the first call decodes it
// once, which can fail as poise_part_read can.
poise_status poise_part_describe(const poise_part* part, poise_part_info* info, poise_error* error);
// Borrows all bytes of a part without a copy, aligned only as the format requires. POISE_UNSUPPORTED when they have no
// address in memory: compressed, computed or missing bytes, and files opened with POISE_IO_READ.
poise_status poise_part_map(const poise_part* part, poise_bytes* bytes, poise_error* error);
// Copies decoded bytes [offset, offset + size); `out` may be NULL when size is 0. POISE_BAD_ARGUMENT outside the part;
// POISE_INVALID_FILE for bytes that cannot be decoded; POISE_UNSUPPORTED for an unknown encoding; POISE_NOT_FOUND for a
// missing file.
poise_status poise_part_read(const poise_part* part, uint64_t offset, void* out, size_t size, poise_error* error);

// Encodes numbers without a file: makes a model with one unnamed tensor, whose elements are `numbers`. `dims` has
// `rank` entries; their product is the number of elements. `type` is as in poise_convert_options.quantize: "q4_k",
// "qint8", "group4:64", ... poise_part_map lends the codes, poise_tensor_decode decodes them. *model is freed with
// poise_model_free. POISE_BAD_ARGUMENT for a type without codes, and for recipes; POISE_UNSUPPORTED for numbers that
// are not finite, and for rows that are not whole blocks or groups.
poise_status poise_quantize(const float* numbers, const uint64_t* dims, size_t rank, const char* type,
                            poise_model** model, poise_error* error);
// Decodes ggml's blocks, row after row, into `count` float32 numbers; `count` is the product of
// `dims`. POISE_BAD_ARGUMENT for a type without blocks, for rows that are not whole blocks, and for a `size` or `count`
// that does not fit `dims`; POISE_UNSUPPORTED for a type that Poise does not decode.
poise_status poise_dequantize(const void* blocks, size_t size, const char* type, const uint64_t* dims, size_t rank,
                              float* numbers, size_t count, poise_error* error);

// ---- Verify, hash, convert -------------------------------------------------------------------------------

typedef struct poise_verify_options {
  size_t size;
  poise_progress progress;
  poise_io io;
  int32_t reserved;
} poise_verify_options;
#define POISE_VERIFY_OPTIONS_INIT \
  { sizeof(poise_verify_options), POISE_PROGRESS_INIT, POISE_IO_MAP, 0 }

typedef struct poise_verify_report {
  size_t size;
  char format[64];  // "alt-v2"; empty when the file could not be opened
  uint64_t tensors;
  uint64_t bytes;    // decoded bytes that were read
  uint64_t digests;  // checked digests of parts
  uint64_t faults;   // the file is good if 0
  uint64_t warnings;
} poise_verify_report;
#define POISE_VERIFY_REPORT_INIT \
  { sizeof(poise_verify_report), "", 0, 0, 0, 0, 0 }

// Checks structure, digests and every value. A faulty file is not a failure of the call: at the end on_finding (may be
// NULL) gets each finding with `user`, in the order of the file. `report` may be NULL. POISE_NOT_FOUND for a path that
// does not exist, POISE_BAD_ARGUMENT for a path that is neither file nor directory.
poise_status poise_verify(const char* path, const poise_verify_options* options,
                          int (*on_finding)(void* user, const poise_finding* finding), void* user,
                          poise_verify_report* report, poise_error* error);

typedef struct poise_hash_options {
  size_t size;
  poise_progress progress;
} poise_hash_options;
#define POISE_HASH_OPTIONS_INIT \
  { sizeof(poise_hash_options), POISE_PROGRESS_INIT }

typedef struct poise_part_hash {
  size_t size;
  poise_text tensor;
  poise_text role;
  poise_text sha256;  // 64 lower-case hexadecimal digits
} poise_part_hash;

typedef struct poise_model_hash {
  size_t size;
  char sha256[72];    // the hash of the model: the same for the same parts in any format
  char content[128];  // zTensor 2's content digest; empty for other formats
} poise_model_hash;
#define POISE_MODEL_HASH_INIT \
  { sizeof(poise_model_hash), "", "" }

// Computes the SHA-256 of each part's decoded bytes, and passes the hashes to on_part (may be NULL) with `user`, in the
// order of tensors' names, then roles. `hash` may be NULL. POISE_INVALID_FILE, naming the tensor, for a part that
// cannot be decoded or has a wrong digest in its file.
poise_status poise_hash(const poise_model* model, const poise_hash_options* options,
                        int (*on_part)(void* user, const poise_part_hash* part), void* user, poise_model_hash* hash,
                        poise_error* error);

// Describes the numbers of one tensor. Codes are decoded, booleans are 0 and 1, and zeros of a sparse tensor count.
typedef struct poise_tensor_statistics {
  size_t size;
  poise_text tensor;
  poise_text type;     // how the elements are stored: "bf16", "q4_k", "sparse_csr f16"
  poise_text problem;  // the reason why Poise cannot compute the statistics; else empty
  uint64_t elements;
  double min;  // this and the next four cover the finite numbers; NaN if there are none
  double max;
  double mean;
  double deviation;  // standard deviation; its divisor is the count
  double rms;        // root of the mean square
  uint64_t zeros;
  uint64_t subnormals;
  uint64_t nans;
  uint64_t infinities;
  uint64_t outliers;             // finite, and further from the mean than six standard deviations
  uint64_t largest_channel;      // the index in the first dimension with the largest rms
  double largest_channel_rms;    // NaN without a dimension or without finite numbers
  double histogram_low;          // the lower end of the first bin; NaN without finite numbers
  double histogram_high;         // the upper end of the last bin; NaN without finite numbers
  uint64_t histogram_counts[8];  // counts of a sample in bins of equal width; the outer bins count numbers outside, too
} poise_tensor_statistics;

typedef struct poise_statistics_options {
  size_t size;
  const char* const* only;  // shell patterns of tensor names; none: all
  size_t only_count;
  const char* const* skip;
  size_t skip_count;
  poise_progress progress;
} poise_statistics_options;
#define POISE_STATISTICS_OPTIONS_INIT \
  { sizeof(poise_statistics_options), NULL, 0, NULL, 0, POISE_PROGRESS_INIT }

// Computes the statistics of all tensors, and passes them to on_tensor with `user`, in the model's order. Reads every
// byte, and does not check digests. POISE_BAD_ARGUMENT for a pattern that matches no tensor; POISE_INVALID_FILE for a
// part that cannot be decoded.
poise_status poise_compute_statistics(const poise_model* model, const poise_statistics_options* options,
                                      int (*on_tensor)(void* user, const poise_tensor_statistics* tensor), void* user,
                                      poise_error* error);

typedef struct poise_report_options {
  size_t size;
  const char* against;  // path of the model that this one was made from; NULL: the page compares with no model
  poise_progress progress;
  poise_io io;
  int32_t overwrite;  // not 0: replace a page that exists
} poise_report_options;
#define POISE_REPORT_OPTIONS_INIT \
  { sizeof(poise_report_options), NULL, POISE_PROGRESS_INIT, POISE_IO_MAP, 0 }

// Writes one page of HTML about the model at `path` to the file `page` (docs/report.md). Faults of the data are part of
// the page, which appears whole or not at all. `bytes` gets the size of the page, and may be NULL. POISE_BAD_ARGUMENT
// for a page that exists without `overwrite` or is an input.
poise_status poise_write_report(const char* path, const char* page, const poise_report_options* options,
                                uint64_t* bytes, poise_error* error);

// Chooses how a format stores parts. POISE_BAD_ARGUMENT for a setting that the format lacks.
typedef struct poise_storage {
  size_t size;
  const char* dialect;            // a dialect of the format, such as "alt.c" of alt; NULL: the canonical form
  poise_digest_algorithm digest;  // the algorithm for every part
  int32_t zstd_level;             // 0: not compressed
  uint64_t align;                 // alignment of parts, a power of two; 0: the format's default
  uint64_t shard_size;            // bytes; 0: one file
} poise_storage;
#define POISE_STORAGE_INIT \
  { sizeof(poise_storage), NULL, POISE_DIGEST_USUAL, 0, 0, 0 }

// Names a pattern and a type: tensors that match become this type.
typedef struct poise_keep {
  const char* pattern;
  const char* type;  // "f32", "f16", "bf16", or a type as in `quantize`, but no mix of types
} poise_keep;

// Describes who made a model. A field that is NULL stays as it is.
typedef struct poise_card {
  size_t size;
  const char* model_type;
  const char* base_model;
  const char* author;
  const char* created_at;     // YYYY-MM-DD
  const char* last_modified;  // YYYY-MM-DD
  const char* license;
  const char* uuid;
} poise_card;
#define POISE_CARD_INIT \
  { sizeof(poise_card), NULL, NULL, NULL, NULL, NULL, NULL, NULL }

// Names a low-rank adapter: a PEFT directory or a GGUF file.
typedef struct poise_lora {
  const char* path;
  double scale;  // times the adapter's own scale; usually 1
} poise_lora;

// Gives another name to tensors whose names match a pattern.
typedef struct poise_rename {
  const char* pattern;  // a shell pattern, or a regular expression after "re:"
  const char* name;     // the k-th * stands for the match of the pattern's k-th *, $1 for a group of the expression
} poise_rename;
// Gives a new value to a key.
typedef struct poise_setting {
  const char* key;   // "card.FIELD", "config.KEY", or an attribute
  const char* text;  // converted to the type of the key's old value; JSON for a new key of the configuration
} poise_setting;

// Holds the options of `poise convert`. Patterns are shell patterns: * ? [a-z]. Everything that the pointers point to
// is read during the call.
typedef struct poise_convert_options {
  size_t size;
  const char* format;      // NULL: by the output's extension
  const char* quantize;    // "qint8", "qint4" (":range", ":mse"), "group8", "group4" (":SIZE"), ggml's blocks ("q8_0",
                           // "q4_k", ...) or a mix of them ("q4_k_m", ..., "auto"); excludes dtype; NULL: no change
  const poise_keep* keep;  // takes precedence over dtype and quantize; the first match counts
  size_t keep_count;
  const char* const* only;  // patterns of tensors to write; none: all
  size_t only_count;
  const char* const* skip;  // patterns of tensors to leave out
  size_t skip_count;
  const char* vocab;  // as in poise_open_options
  const char* merges;
  const poise_card* card;        // fields that replace those of the input's card; NULL: none
  const poise_storage* storage;  // NULL: the defaults
  double min_sparsity;           // `sparse` applies to tensors with at least this share of zeros
  poise_layout sparse;           // POISE_SPARSE_CSR, POISE_SPARSE_COO; POISE_DENSE: no change
  poise_dtype dtype;  // POISE_F32, POISE_F16, POISE_BF16: for floating-point tensors; POISE_DTYPE_UNKNOWN: no change
  poise_progress progress;
  poise_io io;             // how the input is read
  int32_t overwrite;       // 1: replace an existing output
  int32_t verify;          // 1: check the digests of the input while it is read; 0: trust it
  int32_t strict;          // 1: refuse an input with warnings (pickles that name code, ...): nothing is written
  const char* imatrix;     // path of an importance matrix, which weighs the errors of blocks (GGUF, or llama-imatrix's
                           // older format); NULL: none
  const poise_lora* lora;  // adapters to merge into the input, in this order, after the delta and before all else
  size_t lora_count;
  // The fields from strip_prefix to set change the whole model, in this order, after the adapters; drop_rows does so in
  // the place of vocab_size. The other options see the results.
  const char* strip_prefix;    // removed from the beginning of names; NULL: none
  const poise_rename* rename;  // the first pattern that matches a name counts
  size_t rename_count;
  const char* add_prefix;    // put in front of all names; NULL: none
  const char* layers;        // the layers that stay: "0:12,16:32", without the ends of ranges; NULL for all
  uint64_t vocab_size;       // keeps the first tokens, with their rows of embedding and output matrix; 0: all
  const poise_setting* set;  // new values of keys
  size_t set_count;
  uint64_t drop_rows;      // 1: leave out rows of embedding and output that have no token
  const char* delta;       // a file of `poise delta` to apply to the input before everything else; NULL: none
  uint64_t output_size;    // for "auto": the bytes that the output may have; 0: bits_per_weight limits it
  double bits_per_weight;  // for "auto": the most bits per element, over all tensors; 0: output_size limits the size
  const char* text;        // for "auto": path of a text; a matrix weighs by how much its errors change the model's
                           // predictions for the text; NULL: matrices weigh by the number of layers
} poise_convert_options;
// clang-format off
#define POISE_CONVERT_OPTIONS_INIT                                                                          \
  { sizeof(poise_convert_options), NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, 0.5,      \
    POISE_DENSE, POISE_DTYPE_UNKNOWN, POISE_PROGRESS_INIT, POISE_IO_MAP, 0, 1, 0, NULL, NULL, 0,            \
    NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 0, NULL, 0, 0.0, NULL }
// clang-format on

typedef struct poise_convert_report {
  size_t size;
  char format[64];   // that was written
  uint64_t tensors;  // written
  uint64_t skipped;
  uint64_t bytes_in;
  uint64_t bytes_out;
  double seconds;
  poise_string details;  // owned. JSON: {"outputs": [..], "warnings": [..], "losses": [..], "changes": [..],
                         // "casts": [{..}], "quantized": [{..}]}
} poise_convert_report;
#define POISE_CONVERT_REPORT_INIT                                  \
  {                                                                \
    sizeof(poise_convert_report), "", 0, 0, 0, 0, 0.0, { NULL, 0 } \
  }

// Converts a file or directory. The output appears whole or not at all. POISE_INVALID_FILE for bytes of the input that
// do not match their digest, and for a warning if `strict`; POISE_NOT_FOUND for an input that does not exist;
// POISE_BAD_ARGUMENT for invalid options, an output that exists without `overwrite`, and one that is an input;
// POISE_UNSUPPORTED for a model that the output's format cannot hold. `report` may be NULL; otherwise free
// report->details with poise_string_free.
poise_status poise_convert(const char* input, const char* output, const poise_convert_options* options,
                           poise_convert_report* report, poise_error* error);

// ---- Adapters, deltas, importance matrices, downloads ----------------------------------------------------

typedef struct poise_extract_lora_options {
  size_t size;
  uint64_t rank;            // of the product for each matrix, limited to the matrix's shorter side
  const char* const* only;  // shell patterns of tensors to look at; none: all
  size_t only_count;
  const char* const* skip;
  size_t skip_count;
  const char* format;            // NULL: by the output's extension. GGUF has llama.cpp's form, other formats PEFT's
  const poise_storage* storage;  // NULL: the defaults
  poise_progress progress;
  poise_io io;        // how both models are read
  int32_t overwrite;  // 1: replace an existing output
  int32_t verify;     // 1: check the digests of both models; 0: trust them
  int32_t dry_run;    // 1: compute everything and write no file
} poise_extract_lora_options;
#define POISE_EXTRACT_LORA_OPTIONS_INIT \
  { sizeof(poise_extract_lora_options), 16, NULL, 0, NULL, 0, NULL, NULL, POISE_PROGRESS_INIT, POISE_IO_MAP, 0, 1, 0 }

typedef struct poise_lora_report {
  size_t size;
  char format[64];    // that was written
  uint64_t matrices;  // the number of matrices that the adapter changes
  uint64_t bytes_out;
  double captured;       // the share of the squared difference that an extracted adapter reproduces; 1 for a conversion
  poise_string details;  // owned. JSON: {"matrices": [{"name", "shape", "rank", "rms", "captured"}], "equal": ..,
                         // "warnings": [..], "losses": [..]}; a conversion gives only the last two
} poise_lora_report;
#define POISE_LORA_REPORT_INIT                            \
  {                                                       \
    sizeof(poise_lora_report), "", 0, 0, 0.0, { NULL, 0 } \
  }

// Writes an adapter that approximates the changes from the model at `base` to the one at `tuned` (docs/lora.md). The
// output appears whole or not at all. POISE_BAD_ARGUMENT for a rank outside 1 to 65536, a pattern that matches no
// tensor, models that differ in no matrix, and an output that exists without `overwrite` or is an input;
// POISE_INVALID_FILE for a wrong digest; POISE_UNSUPPORTED for a matrix that has no name in the output's form. `report`
// may be NULL; otherwise free report->details with poise_string_free.
poise_status poise_extract_lora(const char* base, const char* tuned, const char* output,
                                const poise_extract_lora_options* options, poise_lora_report* report,
                                poise_error* error);

typedef struct poise_convert_lora_options {
  size_t size;
  const char* base;    // the adapter's base, or its config.json; NULL: the model that the adapter names
  const char* format;  // as in poise_extract_lora_options
  const poise_storage* storage;
  poise_progress progress;
  poise_io io;        // how the base is read
  int32_t overwrite;  // 1: replace an existing output
  int32_t dry_run;    // 1: check everything and write no file
  int32_t reserved;
} poise_convert_lora_options;
#define POISE_CONVERT_LORA_OPTIONS_INIT \
  { sizeof(poise_convert_lora_options), NULL, NULL, NULL, POISE_PROGRESS_INIT, POISE_IO_MAP, 0, 0, 0 }

// Converts an adapter from PEFT's form to llama.cpp's, or the reverse. POISE_BAD_ARGUMENT for an adapter that already
// has the output's form, and if the base is missing; POISE_INVALID_FILE, listing the faults, for a faulty adapter;
// POISE_UNSUPPORTED for kinds of adapters that Poise does not merge, for tensors that the adapter stores whole, and for
// matrices that have no name in the output's form. `report` is as in poise_extract_lora.
poise_status poise_convert_lora(const char* adapter, const char* output, const poise_convert_lora_options* options,
                                poise_lora_report* report, poise_error* error);

typedef struct poise_delta_options {
  size_t size;
  const poise_storage* storage;  // NULL: zstd_level 3. The default of `align` is the least one
  poise_progress progress;
  poise_io io;        // how both models are read
  int32_t overwrite;  // 1: replace an existing output
  int32_t dry_run;    // 1: compute everything and write no file
  int32_t reserved;
} poise_delta_options;
#define POISE_DELTA_OPTIONS_INIT \
  { sizeof(poise_delta_options), NULL, POISE_PROGRESS_INIT, POISE_IO_MAP, 0, 0, 0 }

typedef struct poise_delta_report {
  size_t size;
  char base[72];       // the hash of the base: poise_model_hash.sha256
  uint64_t equal;      // tensors that are equal in both models
  uint64_t changed;    // tensors of the tuned model that differ or are new
  uint64_t bytes_in;   // of both models
  uint64_t bytes_out;  // of the delta
  double seconds;
  poise_string details;  // owned. JSON: {"changed": [{"name", "form", "changed", "elements", "bytes"}],
                         // "removed": [..], "fields": [..]}
} poise_delta_report;
#define POISE_DELTA_REPORT_INIT                                  \
  {                                                              \
    sizeof(poise_delta_report), "", 0, 0, 0, 0, 0.0, { NULL, 0 } \
  }

// Writes a file with the changes from the model at `base` to the one at `tuned`. A conversion of the base with
// poise_convert_options.delta makes the tuned model again (docs/deltas.md). POISE_BAD_ARGUMENT for an output that
// exists without `overwrite` or is an input; POISE_INVALID_FILE for a wrong digest; POISE_UNSUPPORTED for models that
// zTensor cannot hold. `report` may be NULL; otherwise free report->details with poise_string_free.
poise_status poise_make_delta(const char* base, const char* tuned, const char* output,
                              const poise_delta_options* options, poise_delta_report* report, poise_error* error);

typedef struct poise_imatrix_options {
  size_t size;
  uint64_t chunk_size;     // tokens that are computed together
  uint64_t chunks;         // the largest number of chunks; 0: all
  const char* dataset;     // the text's name, which the output records; NULL: none
  const char* const* add;  // paths of importance matrices whose sums are added
  size_t add_count;
  uint64_t threads;         // the largest number; 0: one per processor
  poise_progress progress;  // counts chunks instead of bytes
  int32_t process_output;   // 1: measures the output matrix, too
  int32_t exact;            // 1: as in poise_session_options
  int32_t overwrite;        // 1: replace an existing output
  int32_t reserved;
} poise_imatrix_options;
#define POISE_IMATRIX_OPTIONS_INIT \
  { sizeof(poise_imatrix_options), 512, 0, NULL, NULL, 0, 0, POISE_PROGRESS_INIT, 0, 0, 0, 0 }

typedef struct poise_imatrix_report {
  size_t size;
  uint64_t entries;  // matrices, or stacks of all experts' matrices
  uint64_t chunks;
  uint64_t chunk_size;
  poise_string details;  // owned. JSON: {"datasets": [..], "unused_experts": [{"entry", "experts", "count"}]}
} poise_imatrix_report;
#define POISE_IMATRIX_REPORT_INIT                      \
  {                                                    \
    sizeof(poise_imatrix_report), 0, 0, 0, { NULL, 0 } \
  }

// Runs a model on a text, and writes the sums of the squared inputs of each matrix, for poise_convert_options.imatrix
// (docs/quantization.md): as GGUF, or in llama-imatrix's older format if the output's name ends in ".dat". `text` has
// `text_size` bytes; tokens at its end that fill no chunk are left out. If `model` is NULL, the call only adds up the
// files of `add`, and `text` must be NULL. POISE_BAD_ARGUMENT for a text without a chunk, for a chunk_size below 16 or
// beyond the model's context, for files of different models, and for an output that exists without `overwrite` or is an
// input; POISE_UNSUPPORTED for a model that Poise does not run. `report` may be NULL; otherwise free report->details
// with poise_string_free.
poise_status poise_measure_imatrix(const poise_model* model, const char* text, size_t text_size, const char* output,
                                   const poise_imatrix_options* options, poise_imatrix_report* report,
                                   poise_error* error);

typedef struct poise_fetch_options {
  size_t size;
  const char* output;       // a directory for plain files; NULL: the Hub's cache on this machine
  const char* const* only;  // shell patterns of file names; none: all
  size_t only_count;
  uint64_t parallel;  // files at once, 1 to 16
  poise_progress progress;
  int32_t overwrite;  // 1: replaces files in `output` whose content differs
  int32_t reserved;
} poise_fetch_options;
#define POISE_FETCH_OPTIONS_INIT \
  { sizeof(poise_fetch_options), NULL, NULL, 0, 4, POISE_PROGRESS_INIT, 0, 0 }

typedef struct poise_fetch_report {
  size_t size;
  poise_string directory;  // owned: the directory with the files, for poise_open
  char commit[72];
  uint64_t files;       // the number of selected files
  uint64_t kept;        // files that were complete already
  uint64_t bytes;       // that were received
  uint64_t bytes_kept;  // that were there: whole files, and the beginnings of others
} poise_fetch_report;
#define POISE_FETCH_REPORT_INIT \
  { sizeof(poise_fetch_report), {NULL, 0}, "", 0, 0, 0, 0 }

// Downloads hf://ORG/NAME[@REVISION][/FILE] and checks the digest of each file (docs/remote.md). A call goes on where
// an interrupted call stopped. Fails as poise_open_url does; also POISE_BAD_ARGUMENT for other URLs, for a pattern that
// matches no file, and for an existing file with another content without `overwrite`; POISE_UNSUPPORTED for a file
// without a digest; POISE_INVALID_FILE for a wrong digest. `report` may be NULL; otherwise free report->directory with
// poise_string_free.
poise_status poise_fetch(const char* url, const poise_fetch_options* options, poise_fetch_report* report,
                         poise_error* error);

// ---- Writing ---------------------------------------------------------------------------------------------
//
// Plan the file, then finish it: poise_writer_finish asks for the tensors' bytes. A writer that is freed without
// poise_writer_finish leaves no file. After poise_writer_finish, every other call with the writer returns
// POISE_BAD_ARGUMENT, except for poise_writer_losses, and poise_writer_free still frees it.

typedef struct poise_writer poise_writer;

typedef struct poise_writer_options {
  size_t size;
  const poise_storage* storage;  // NULL: the defaults. The call copies it
  poise_progress progress;
  int32_t overwrite;  // 1: replace an existing file
  int32_t reserved;
} poise_writer_options;
#define POISE_WRITER_OPTIONS_INIT \
  { sizeof(poise_writer_options), NULL, POISE_PROGRESS_INIT, 0, 0 }

typedef struct poise_tensor_plan {
  size_t size;
  const char* name;
  const uint64_t* dims;  // `rank` lengths; NULL when rank is 0
  size_t rank;
  // Fills bytes [offset, offset + size) of the tensor. Poise asks for bytes in any order, and more than once for the
  // same bytes if a format must see them before it writes them.
  int (*fill)(void* user, uint64_t offset, void* out, size_t size);
  void* user;
  poise_affine affine;  // the scale of POISE_QINT8 and POISE_QINT4 (packed: two codes a byte); else ignored
  poise_dtype dtype;
  int32_t reserved;
} poise_tensor_plan;
#define POISE_TENSOR_PLAN_INIT \
  { sizeof(poise_tensor_plan), NULL, NULL, 0, NULL, NULL, {0.0f, 0.0f, 0.0f, 0}, POISE_DTYPE_UNKNOWN, 0 }

// Plans the file. If `format` is NULL, the path's extension chooses it. Writes no byte yet. POISE_BAD_ARGUMENT for a
// format that Poise does not write, and for a file that exists without options->overwrite; POISE_NOT_FOUND for a
// missing folder. *writer is freed with poise_writer_free.
poise_status poise_writer_create(const char* path, const char* format, const poise_writer_options* options,
                                 poise_writer** writer, poise_error* error);
// Copies card, configuration, vocabulary and attributes from a model.
poise_status poise_writer_set_metadata(poise_writer* writer, const poise_model* from, poise_error* error);
// Sets the fields of a card, and copies them. POISE_BAD_ARGUMENT, naming the field, for a value that breaks a rule of
// cards.
poise_status poise_writer_set_card(poise_writer* writer, const poise_card* card, poise_error* error);
// Sets the configuration. `json` is the text of a config.json, and every key is kept. If Poise knows the model_type,
// the object must have the hyperparameters of that family. POISE_BAD_ARGUMENT for other texts.
poise_status poise_writer_set_config(poise_writer* writer, const char* json, poise_error* error);
// Sets attributes from a JSON object; each replaces the one with the same key. POISE_BAD_ARGUMENT for other texts.
// poise_writer_finish refuses "poise.card", "poise.config" and "poise.vocabulary", which Poise writes itself, if their
// value is not one that Poise writes.
poise_status poise_writer_set_attributes(poise_writer* writer, const char* json, poise_error* error);
// The first call begins a vocabulary without tokens; the others add tokens and merges. The counts in `vocabulary` are
// ignored. Tokens get ids, and merges get ranks, in the order of the calls. Everything is copied. POISE_BAD_ARGUMENT
// for POISE_PIPELINE, for an unknown kind of vocabulary or type of token, and for tokens and merges without a
// vocabulary.
poise_status poise_writer_set_vocabulary(poise_writer* writer, const poise_vocabulary* vocabulary, poise_error* error);
poise_status poise_writer_add_token(poise_writer* writer, const poise_token* token, poise_error* error);
poise_status poise_writer_add_merge(poise_writer* writer, const poise_merge* merge, poise_error* error);
// Adds a tensor, dense or affine. Copies everything except plan->user. POISE_BAD_ARGUMENT for a name that is taken, an
// unknown type, an invalid scale, and a shape whose number of elements overflows.
poise_status poise_writer_add_tensor(poise_writer* writer, const poise_tensor_plan* plan, poise_error* error);
// Adds another model's tensor unchanged, in any layout. The writer keeps what it needs of the model. POISE_BAD_ARGUMENT
// for a name that is taken.
poise_status poise_writer_copy_tensor(poise_writer* writer, const poise_tensor* tensor, poise_error* error);
// Writes the file, which appears whole or not at all. Afterwards only poise_writer_losses takes the writer.
// POISE_CANCELLED when a fill returns anything but 0; POISE_BAD_ARGUMENT for a special token's id outside the
// vocabulary; POISE_UNSUPPORTED for tensors that the format cannot hold, and for attributes that readers would reject;
// POISE_INVALID_FILE for a copied tensor that cannot be read. Leaves out other things that the format cannot hold.
poise_status poise_writer_finish(poise_writer* writer, poise_error* error);
// Gives what the format cannot hold of the planned model, such as its card or attributes: a JSON list of sentences,
// which is "[]" if nothing is lost. Before poise_writer_finish, asks for no bytes, and fails as poise_writer_finish
// would. POISE_BAD_ARGUMENT after poise_writer_finish has failed. *losses is freed with poise_string_free.
poise_status poise_writer_losses(const poise_writer* writer, poise_string* losses, poise_error* error);
void poise_writer_free(poise_writer* writer);

// ---- Text to tokens and back -----------------------------------------------------------------------------

typedef struct poise_tokenizer poise_tokenizer;

// Makes the tokenizer of a model. POISE_NOT_FOUND for a model without a vocabulary, POISE_INVALID_FILE for an
// inconsistent one. *tokenizer is freed with poise_tokenizer_free.
poise_status poise_tokenizer_create(const poise_model* model, poise_tokenizer** tokenizer, poise_error* error);
// Makes a tokenizer of tokenizer files: one file (tokenizer.json, tokenizer.model, ...), or a directory with some of
// them. POISE_NOT_FOUND if there are no such files, POISE_INVALID_FILE for an invalid one, POISE_UNSUPPORTED for
// features that Poise does not know.
poise_status poise_tokenizer_open(const char* path, poise_tokenizer** tokenizer, poise_error* error);
void poise_tokenizer_free(poise_tokenizer* tokenizer);
// Encodes without BOS or EOS. `text` has `size` bytes, and may be NULL when that is 0; malformed UTF-8 reads as U+FFFD.
// *tokens is freed with poise_tokens_free. POISE_UNSUPPORTED for a kind of vocabulary that Poise does not encode with,
// and for a character without a token.
poise_status poise_tokenizer_encode(const poise_tokenizer* tokenizer, const char* text, size_t size,
                                    poise_tokens* tokens, poise_error* error);
// Encodes with the special tokens around the text: those of the vocabulary's post-processor, else BOS in front if the
// vocabulary has it.
poise_status poise_tokenizer_encode_with_special(const poise_tokenizer* tokenizer, const char* text, size_t size,
                                                 poise_tokens* tokens, poise_error* error);

typedef struct poise_chat_template {
  size_t size;
  poise_text name;  // "chatml"
  poise_text end;   // the text that ends an answer: if it is a token, set poise_generate_options.stop_id to this token,
                    // else add the text to `stop`; empty: the vocabulary's EOS ends an answer
} poise_chat_template;
#define POISE_CHAT_TEMPLATE_INIT                        \
  {                                                     \
    sizeof(poise_chat_template), {NULL, 0}, { NULL, 0 } \
  }

// Gives the built-in chat template (docs/chat.md) at an index from 0, the most used first. The texts are static.
// POISE_NOT_FOUND past the last.
poise_status poise_chat_template_at(size_t index, poise_chat_template* chat_template, poise_error* error);
// Renders a conversation in JSON (docs/chat.md) with a chat template, as text and as tokens. Either may be NULL; they
// are freed with poise_string_free and poise_tokens_free. `jinja`: the template, or the name of a built-in one; NULL:
// the vocabulary's. `jinja_size` and `size` are the lengths of `jinja` and `conversation`. POISE_UNSUPPORTED if there
// is no template, or if it takes too many steps or too much memory; POISE_INVALID_FILE for a malformed template or
// conversation, POISE_BAD_ARGUMENT for a conversation that the template rejects.
poise_status poise_tokenizer_encode_chat(const poise_tokenizer* tokenizer, const char* jinja, size_t jinja_size,
                                         const char* conversation, size_t size, poise_string* text,
                                         poise_tokens* tokens, poise_error* error);
// Decodes tokens to a text. `tokens` may be NULL when count is 0. *text is freed with poise_string_free.
// POISE_BAD_ARGUMENT for an id outside the vocabulary.
poise_status poise_tokenizer_decode(const poise_tokenizer* tokenizer, const int32_t* tokens, size_t count,
                                    poise_string* text, poise_error* error);

// Decodes token by token. The pieces concatenate to the text of all tokens; each ends where a character ends.
typedef struct poise_stream poise_stream;

// Begins a stream. The tokenizer must stay until the stream is freed. *stream is freed with poise_stream_free.
poise_status poise_stream_create(const poise_tokenizer* tokenizer, poise_stream** stream, poise_error* error);
void poise_stream_free(poise_stream* stream);
// Adds a token. *text is borrowed until the next call with the stream. POISE_BAD_ARGUMENT for an id outside the
// vocabulary.
poise_status poise_stream_add(poise_stream* stream, int32_t token, poise_text* text, poise_error* error);
// Gives the bytes held back so far. The stream then starts over. *text is borrowed until the next call with the stream.
poise_status poise_stream_finish(poise_stream* stream, poise_text* text, poise_error* error);

// ---- Running ---------------------------------------------------------------------------------------------

typedef struct poise_session poise_session;

// Chooses how keys and values are stored (docs/quantization.md).
typedef enum poise_cache_type POISE_ENUM {
  POISE_CACHE_F32 = 0,     // the numbers are not rounded
  POISE_CACHE_F16 = 1,     // numbers beyond 65504 are POISE_UNSUPPORTED
  POISE_CACHE_Q8 = 2,      // 8-bit codes, with a float32 scale for each 32 numbers of a head
  POISE_CACHE_DEFAULT = 3  // POISE_CACHE_F16, or POISE_CACHE_F32 where `exact` is not 0
} poise_cache_type;

typedef struct poise_session_options {
  size_t size;
  uint64_t threads;          // the largest number; 0: one per processor
  uint64_t context;          // the largest number of positions; 0: the model's maximum
  int32_t exact;             // not 0: does not round the numbers that weights are multiplied by, which is slower; for
                             // comparisons
  int32_t draft_lookup;      // not 0: guesses tokens from repetitions in the text, and checks several in one pass
  const poise_model* draft;  // a faster model with the same vocabulary that guesses tokens; NULL: none
  poise_cache_type cache;
  int32_t reserved;
  // Poise calls `cancel` with `cancel_user` when poise_session_feed, poise_session_hidden_states,
  // poise_session_log_probabilities or poise_batch_step begins, and while it computes. NULL: Poise does not cancel
  // these calls.
  int (*cancel)(void* user);
  void* cancel_user;
} poise_session_options;
#define POISE_SESSION_OPTIONS_INIT \
  { sizeof(poise_session_options), 0, 0, 0, 0, NULL, POISE_CACHE_DEFAULT, 0, NULL, NULL }

// Begins a session. POISE_UNSUPPORTED for models that Poise does not run, POISE_INVALID_FILE when hyperparameters,
// vocabulary and tensors disagree, POISE_BAD_ARGUMENT for an impossible number of threads or positions, for an unknown
// type of cache, and for a draft with another vocabulary. The draft may be freed. *session is freed with
// poise_session_free.
poise_status poise_session_create(const poise_model* model, const poise_session_options* options,
                                  poise_session** session, poise_error* error);
void poise_session_free(poise_session* session);

typedef struct poise_session_info {
  size_t size;
  size_t vocabulary_size;  // the number of logits; the tokenizer may have fewer tokens
  size_t context;          // the maximum number of positions
  size_t position;         // tokens fed so far
  int32_t has_tokenizer;   // 0 or 1
  int32_t reserved;
  size_t hidden_size;  // the length of a hidden state
  size_t layers;       // the number of blocks of attention and feed-forward network
} poise_session_info;
#define POISE_SESSION_INFO_INIT \
  { sizeof(poise_session_info), 0, 0, 0, 0, 0, 0, 0 }

// Describes a session.
poise_status poise_session_describe(const poise_session* session, poise_session_info* info, poise_error* error);
// Encodes a text, with special tokens around it, as poise_tokenizer_encode_with_special does. POISE_UNSUPPORTED for a
// session without a tokenizer.
poise_status poise_session_prompt(const poise_session* session, const char* text, size_t size, poise_tokens* tokens,
                                  poise_error* error);
// Drops all tokens.
poise_status poise_session_reset(poise_session* session, poise_error* error);
// Drops all tokens after the first `position`. If it drops any, poise_session_logits needs another poise_session_feed.
// POISE_BAD_ARGUMENT for a position beyond the last token.
poise_status poise_session_truncate(poise_session* session, size_t position, poise_error* error);
// Makes an independent session with the same tokens and options, on the same weights. *fork is freed with
// poise_session_free.
poise_status poise_session_fork(const poise_session* session, poise_session** fork, poise_error* error);
// Writes the session's tokens, their keys and values, and the scores of the next token to a zTensor file, with a
// fingerprint of the model (docs/chat.md). POISE_BAD_ARGUMENT for a file that exists, unless `overwrite` is not 0.
poise_status poise_session_save(const poise_session* session, const char* path, int32_t overwrite, poise_error* error);
// Replaces the session's tokens with those of a file that poise_session_save wrote, without computing them again.
// POISE_BAD_ARGUMENT for a file of another model, with another type of cache, or with more tokens than fit;
// POISE_INVALID_FILE for a file that is not a saved session, or is faulty.
poise_status poise_session_load(poise_session* session, const char* path, poise_error* error);
// Appends tokens; `tokens` may be NULL when count is 0. POISE_BAD_ARGUMENT, before any computation, for a token that
// the model lacks, or when the tokens do not fit. After POISE_CANCELLED the session has the tokens that were computed.
poise_status poise_session_feed(poise_session* session, const int32_t* tokens, size_t count, poise_error* error);
// Gives the scores (logits) of the next token: an array indexed by token id, borrowed until the session changes.
// POISE_BAD_ARGUMENT before the first token, and after poise_session_truncate has dropped tokens, until tokens are fed.
poise_status poise_session_logits(const poise_session* session, const float** logits, size_t* count,
                                  poise_error* error);

// Gives the hidden state of the last token fed, after the final norm, from which the logits are computed. It is
// borrowed until the session changes. POISE_BAD_ARGUMENT before the first token, and after poise_session_load, or after
// poise_session_truncate has dropped tokens, until something is fed.
poise_status poise_session_hidden_state(const poise_session* session, const float** state, size_t* count,
                                        poise_error* error);
// Starts over, feeds all tokens, and writes the hidden state of each to `out`, [count, hidden_size], which may be NULL
// when count is 0. Layer 0 is the embedding (scaled, and with positions, where the family has these). Layer i is the
// output of the i-th block. The last layer, poise_session_info.layers, is the output of the last block after the final
// norm. POISE_BAD_ARGUMENT for a layer beyond the last.
poise_status poise_session_hidden_states(poise_session* session, const int32_t* tokens, size_t count, size_t layer,
                                         float* out, poise_error* error);

typedef struct poise_log_probability {
  int32_t token;  // -1: there are no more
  int32_t reserved;
  double log_probability;  // the natural logarithm of its probability
} poise_log_probability;

// Fills out[count] with the most probable next tokens, the best first. poise_generate_options have no effect on them.
// `out` may be NULL when count is 0. POISE_BAD_ARGUMENT as for poise_session_logits.
poise_status poise_session_top_log_probabilities(const poise_session* session, size_t count, poise_log_probability* out,
                                                 poise_error* error);

// Adds a number to a token's score.
typedef struct poise_logit_bias {
  int32_t token;
  float bias;
} poise_logit_bias;

typedef struct poise_generate_options {
  size_t size;
  uint64_t max_tokens;
  uint64_t seed;       // the seed of the random numbers
  int64_t top_k;       // chooses among the k best tokens; 0: among all
  float temperature;   // 0: always the best token
  float top_p;         // chooses among the fewest tokens that together have this probability
  int32_t stop_id;     // the token that ends the text; -1: the end tokens that the files name
  int32_t ignore_eos;  // not 0: neither end tokens nor stop_id end the text
  // docs/chat.md gives the order in which Poise applies the options of sampling.
  float min_p;               // chooses among tokens with at least this share of the best one's probability
  float repetition_penalty;  // divides positive scores of tokens in the text, multiplies negative ones; 1: no effect
  float presence_penalty;    // subtracted from the score of each generated token
  float frequency_penalty;   // subtracted for each occurrence of a generated token
  const poise_logit_bias* logit_bias;  // `logit_bias_count` entries
  size_t logit_bias_count;
  const poise_text* stop;  // `stop_count` texts, none of them empty, that end the generated text
  size_t stop_count;
} poise_generate_options;
#define POISE_GENERATE_OPTIONS_INIT \
  { sizeof(poise_generate_options), 128, 0, 0, 0.0f, 1.0f, -1, 0, 0.0f, 1.0f, 0.0f, 0.0f, NULL, 0, NULL, 0 }

// Sets the fields of sampling that the model's files state, in generation_config.json or general.sampling.*, as `poise
// run` does; the other fields stay as they are. The caller begins `options` with its initializer.
poise_status poise_model_sampling_defaults(const poise_model* model, poise_generate_options* options,
                                           poise_error* error);

typedef enum poise_stop_reason POISE_ENUM {
  POISE_STOP_END_OF_TEXT = 0,
  POISE_STOP_MAX_TOKENS = 1,
  POISE_STOP_CONTEXT_FULL = 2,
  POISE_STOP_CALLBACK = 3,
  POISE_STOP_TEXT = 4  // a token completed one of the texts of poise_generate_options.stop
} poise_stop_reason;

typedef struct poise_generation {
  size_t size;
  size_t tokens;  // the number of generated tokens, including an end token
  poise_stop_reason reason;
  int32_t last;  // the last generated token, which is not fed yet: feed it to continue; -1: none
} poise_generation;
#define POISE_GENERATION_INIT \
  { sizeof(poise_generation), 0, POISE_STOP_END_OF_TEXT, -1 }

// Continues the tokens fed so far, passing each new one to on_token (may be NULL) with `user`. If on_token returns
// anything but 0, the generation ends, and the call returns POISE_OK. `generation` may be NULL. POISE_BAD_ARGUMENT
// before the first token, and for invalid options; POISE_UNSUPPORTED for weights whose scores are not finite.
poise_status poise_session_generate(poise_session* session, const poise_generate_options* options,
                                    int (*on_token)(void* user, int32_t token), void* user,
                                    poise_generation* generation, poise_error* error);
// Starts over, feeds all tokens, and fills out[count - 1] with the natural logarithm of the probability of each except
// the first. `out` may be NULL when count is below 2. POISE_BAD_ARGUMENT as for poise_session_feed.
poise_status poise_session_log_probabilities(poise_session* session, const int32_t* tokens, size_t count, double* out,
                                             poise_error* error);

// ---- Several texts at a time -----------------------------------------------------------------------------

// Generates several texts at the same time with one model. A step multiplies the tokens of all of them by each weight
// once, and texts that begin alike compute their beginning once. Each text equals that of a separate session, up to the
// rounding of float32 sums and of the cache; with poise_session_options.exact it is identical.
typedef struct poise_batch poise_batch;

// Begins a batch. Each text has options->context positions. *batch is freed with poise_batch_free. Fails as
// poise_session_create does, and with POISE_BAD_ARGUMENT for a draft.
poise_status poise_batch_create(const poise_model* model, const poise_session_options* options, poise_batch** batch,
                                poise_error* error);
void poise_batch_free(poise_batch* batch);
// Encodes a text as poise_session_prompt does.
poise_status poise_batch_prompt(const poise_batch* batch, const char* text, size_t size, poise_tokens* tokens,
                                poise_error* error);
// Adds a text, which takes part in steps until it ends as poise_session_generate would end it. *id is 0, 1, ... Copies
// tokens and options. POISE_BAD_ARGUMENT for no tokens, for a token that the model lacks, for more tokens than the
// context has positions, and for invalid options; POISE_UNSUPPORTED for options->stop without a vocabulary.
poise_status poise_batch_add(poise_batch* batch, const int32_t* tokens, size_t count,
                             const poise_generate_options* options, size_t* id, poise_error* error);
// Gives the number of texts that no step has finished yet.
poise_status poise_batch_count(const poise_batch* batch, size_t* count, poise_error* error);
// Computes at most 512 tokens: the next one of each text, and parts of prompts. *finished is the number of texts that
// have ended; poise_batch_finished gives these texts until the next step. Does nothing without texts. After a failure
// or POISE_CANCELLED no text is lost: the next step goes on. POISE_UNSUPPORTED for a number that the cache cannot hold,
// and for weights whose scores are not finite.
poise_status poise_batch_step(poise_batch* batch, size_t* finished, poise_error* error);

typedef struct poise_finished_text {
  size_t size;
  size_t id;              // the id that poise_batch_add gave
  const int32_t* tokens;  // the generated tokens, including an end token
  size_t token_count;
  poise_text text;  // the tokens' text, cut at options.stop; empty without a vocabulary
  poise_stop_reason reason;
  int32_t reserved;
} poise_finished_text;
#define POISE_FINISHED_TEXT_INIT \
  { sizeof(poise_finished_text), 0, NULL, 0, {NULL, 0}, POISE_STOP_END_OF_TEXT, 0 }

// Gives a text that ended in the last step, by index from 0. Tokens and text are borrowed until the next step.
// POISE_NOT_FOUND past the last.
poise_status poise_batch_finished(const poise_batch* batch, size_t index, poise_finished_text* text,
                                  poise_error* error);

#ifdef __cplusplus
}
#endif

#endif
