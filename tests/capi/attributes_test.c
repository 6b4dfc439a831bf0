// Card, hyperparameters and attributes: typed getters, and JSON.
#include "check.h"

static void reads_the_config(void) {
  poise_model* model = open_example();
  const poise_attributes* config;
  const poise_attributes* card;
  poise_text key;
  poise_value_type type = POISE_VALUE_NULL;
  poise_string json;
  poise_text text;
  poise_bytes bytes;
  int64_t integer = -7;
  uint64_t positive = 0;
  double real = 0;
  int truth = -1;
  size_t count = 0;
  CHECK_OK(poise_model_config(model, &config, &error));
  // The numbers of examples/nano-mistral/config.json.
  CHECK_OK(poise_attributes_get_integer(config, "hidden_size", &integer, &error));
  CHECK(integer == 128);
  CHECK_OK(poise_attributes_get_unsigned(config, "sliding_window", &positive, &error));
  CHECK(positive == 128);
  CHECK_OK(poise_attributes_get_real(config, "rms_norm_eps", &real, &error));
  CHECK(real == 1e-05);
  CHECK_OK(poise_attributes_get_real(config, "num_hidden_layers", &real, &error));
  CHECK(real == 4);
  CHECK_OK(poise_attributes_get_boolean(config, "tie_word_embeddings", &truth, &error));
  CHECK(truth == 0);
  CHECK_OK(poise_attributes_get_text(config, "hidden_act", &text, &error));
  CHECK_TEXT("silu", text);
  CHECK_OK(poise_attributes_count(config, &count, &error));
  CHECK(count == 22);  // the file's 21, in its order, and head_dim
  CHECK_OK(poise_attributes_at(config, 0, &key, &type, &error));
  CHECK_TEXT("architectures", key);
  CHECK(type == POISE_VALUE_ARRAY);
  CHECK_STATUS(POISE_NOT_FOUND, poise_attributes_at(config, count, &key, &type, &error));

  CHECK_STATUS(POISE_NOT_FOUND, poise_attributes_get_integer(config, "no_such_key", &integer, &error));
  CHECK_SAYS("no_such_key");
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_integer(config, "hidden_act", &integer, &error));
  CHECK_SAYS("is text");
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_integer(config, "rms_norm_eps", &integer, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_unsigned(config, "hidden_act", &positive, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_real(config, "hidden_act", &real, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_boolean(config, "hidden_size", &truth, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_text(config, "hidden_size", &text, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_bytes(config, "hidden_size", &bytes, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_attributes_get_json(config, "no_such_key", &json, &error));
  CHECK(integer == 128);  // calls that fail leave their output alone

  CHECK_OK(poise_attributes_get_json(config, "hidden_size", &json, &error));
  CHECK(strcmp(json.data, "128") == 0 && json.size == 3);
  poise_string_free(&json);
  CHECK(json.data == NULL && json.size == 0);
  poise_string_free(&json);
  CHECK_OK(poise_attributes_get_json(config, NULL, &json, &error));
  CHECK(strncmp(json.data, "{\"architectures\":[\"MistralForCausalLM\"],\"attention_dropout\":0.0,", 64) == 0);
  CHECK(strstr(json.data, "\"num_key_value_heads\":2") != NULL);
  CHECK(json.size == strlen(json.data));
  poise_string_free(&json);

  CHECK_OK(poise_model_card(model, &card, &error));
  CHECK_OK(poise_attributes_get_text(card, "model_type", &text, &error));
  CHECK_TEXT("mistral", text);
  poise_model_free(model);
}

// Reads all types of values, through the attributes of a safetensors or zTensor file that is written first.
static void reads_values_of_every_type(void) {
  poise_writer* writer = NULL;
  poise_model* model = NULL;
  const poise_attributes* attributes;
  poise_text key;
  poise_value_type type = POISE_VALUE_NULL;
  poise_string json;
  int64_t integer = 0;
  uint64_t positive = 0;
  double real = 0;
  int truth = 0;
  poise_text text;
  size_t i;
  static const poise_value_type types[] = {POISE_VALUE_NULL,    POISE_VALUE_BOOLEAN, POISE_VALUE_INTEGER,
                                           POISE_VALUE_INTEGER, POISE_VALUE_REAL,    POISE_VALUE_TEXT,
                                           POISE_VALUE_ARRAY,   POISE_VALUE_MAP};
  CHECK_OK(poise_writer_create(scratch("values.zt"), NULL, NULL, &writer, &error));
  CHECK_OK(poise_writer_set_attributes(
      writer,
      "{\"a\":null,\"b\":true,\"c\":-5,\"d\":18446744073709551615,\"e\":0.5,\"f\":\"x\",\"g\":[1,2],\"h\":{\"i\":3}}",
      &error));
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_open(scratch("values.zt"), NULL, &model, &error));
  CHECK_OK(poise_model_attributes(model, &attributes, &error));
  for (i = 0; i < 8; ++i) {
    CHECK_OK(poise_attributes_at(attributes, i, &key, &type, &error));
    CHECK(key.data[0] == (char)('a' + (int)i) && type == types[i]);
  }
  CHECK_OK(poise_attributes_get_boolean(attributes, "b", &truth, &error));
  CHECK(truth == 1);
  CHECK_OK(poise_attributes_get_integer(attributes, "c", &integer, &error));
  CHECK(integer == -5);
  CHECK_OK(poise_attributes_get_real(attributes, "c", &real, &error));
  CHECK(real == -5);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_unsigned(attributes, "c", &positive, &error));
  CHECK_OK(poise_attributes_get_unsigned(attributes, "d", &positive, &error));
  CHECK(positive == UINT64_MAX);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_integer(attributes, "d", &integer, &error));
  CHECK_OK(poise_attributes_get_real(attributes, "e", &real, &error));
  CHECK(real == 0.5);
  CHECK_OK(poise_attributes_get_text(attributes, "f", &text, &error));
  CHECK_TEXT("x", text);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_attributes_get_text(attributes, "a", &text, &error));
  CHECK_OK(poise_attributes_get_json(attributes, "h", &json, &error));
  CHECK(strcmp(json.data, "{\"i\":3}") == 0);
  poise_string_free(&json);
  poise_model_free(model);
}

void test_attributes(void) {
  reads_the_config();
  reads_values_of_every_type();
}
