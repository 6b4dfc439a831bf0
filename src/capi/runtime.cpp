#include <poise/batch.hpp>
#include <poise/chat.hpp>
#include <poise/sampling_defaults.hpp>

#include "capi/face.hpp"
#include "family/check.hpp"
#include "tokenizer/pipeline/steps.hpp"

using namespace poise::capi;

poise_status poise_tokenizer_create(const poise_model* model, poise_tokenizer** tokenizer, poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokenizer*& out = dereference(tokenizer, "tokenizer");
    const poise::Vocabulary& whole = dereference(model, "model").vocabulary();
    const std::size_t rows = poise::count_embedded_tokens(model->model).value_or(whole.size());
    out = new poise_tokenizer{poise::Tokenizer(poise::keep_first_tokens(whole, rows))};
  });
}

poise_status poise_tokenizer_open(const char* path, poise_tokenizer** tokenizer, poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokenizer*& out = dereference(tokenizer, "tokenizer");
    const std::string from(require_text(path, "path"));
    auto vocabulary = poise::read_vocabulary(from);
    if (!vocabulary)
      throw poise::Error(poise::ErrorKind::not_found,
                         "has no vocabulary; pass a tokenizer file such as tokenizer.json, or a directory with one",
                         from);
    out = new poise_tokenizer{poise::Tokenizer(*std::move(vocabulary))};
  });
}

void poise_tokenizer_free(poise_tokenizer* tokenizer) { delete tokenizer; }

poise_status poise_tokenizer_encode(const poise_tokenizer* tokenizer, const char* text, size_t size,
                                    poise_tokens* tokens, poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokens& out = dereference(tokens, "tokens");
    out = copy_tokens_out(dereference(tokenizer, "tokenizer").tokenizer.encode(view_input(text, size)));
  });
}

poise_status poise_tokenizer_encode_with_special(const poise_tokenizer* tokenizer, const char* text, size_t size,
                                                 poise_tokens* tokens, poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokens& out = dereference(tokens, "tokens");
    out = copy_tokens_out(dereference(tokenizer, "tokenizer").tokenizer.encode_with_special(view_input(text, size)));
  });
}

poise_status poise_tokenizer_encode_chat(const poise_tokenizer* tokenizer, const char* jinja, size_t jinja_size,
                                         const char* conversation, size_t size, poise_string* text,
                                         poise_tokens* tokens, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Tokenizer& with = dereference(tokenizer, "tokenizer").tokenizer;
    const poise::Conversation talk =
        poise::parse_conversation(view_text({conversation, size}, "conversation"), "conversation");
    const poise::ChatTemplate chat = jinja == nullptr
                                         ? poise::ChatTemplate(with.vocabulary(), talk.tools != poise::Value())
                                         : poise::ChatTemplate::find(view_text({jinja, jinja_size}, "jinja"), with);
    const poise::ChatText made = chat.render(talk);
    poise_tokens ids = {};
    if (tokens != nullptr) ids = copy_tokens_out(with.encode(made));
    if (text != nullptr) {
      try {
        *text = copy_text_out(made.text);
      } catch (...) {
        std::free(ids.data);
        throw;
      }
    }
    if (tokens != nullptr) *tokens = ids;
  });
}

poise_status poise_chat_template_at(size_t index, poise_chat_template* chat_template, poise_error* error) {
  return catch_errors(error, [&] {
    const std::vector<poise::BuiltInTemplateInfo> all = poise::list_built_in_templates();
    if (index >= all.size())
      refuse_missing(fmt::format("built-in template {} is out of range: there are {}", index, all.size()));
    copy_struct_out(chat_template, "chat_template",
                    {sizeof(poise_chat_template), lend_text(all[index].name), lend_text(all[index].end)});
  });
}

poise_status poise_tokenizer_decode(const poise_tokenizer* tokenizer, const int32_t* tokens, size_t count,
                                    poise_string* text, poise_error* error) {
  return catch_errors(error, [&] {
    poise_string& out = dereference(text, "text");
    out = copy_text_out(dereference(tokenizer, "tokenizer").tokenizer.decode(view_items(tokens, count, "tokens")));
  });
}

poise_status poise_stream_create(const poise_tokenizer* tokenizer, poise_stream** stream, poise_error* error) {
  return catch_errors(error, [&] {
    poise_stream*& out = dereference(stream, "stream");
    out = new poise_stream(dereference(tokenizer, "tokenizer").tokenizer);
  });
}

void poise_stream_free(poise_stream* stream) { delete stream; }

poise_status poise_stream_add(poise_stream* stream, int32_t token, poise_text* text, poise_error* error) {
  return catch_errors(error, [&] {
    poise_text& out = dereference(text, "text");
    poise_stream& from = dereference(stream, "stream");
    from.text = from.stream.add(token);
    out = lend_text(from.text);
  });
}

poise_status poise_stream_finish(poise_stream* stream, poise_text* text, poise_error* error) {
  return catch_errors(error, [&] {
    poise_text& out = dereference(text, "text");
    poise_stream& from = dereference(stream, "stream");
    from.text = from.stream.finish();
    out = lend_text(from.text);
  });
}

poise_status poise_session_create(const poise_model* model, const poise_session_options* options,
                                  poise_session** session, poise_error* error) {
  return catch_errors(error, [&] {
    poise_session*& out = dereference(session, "session");
    const poise::SessionOptions to = read_session_options(options);
    out = new poise_session{poise::Session(dereference(model, "model").model, to), Cancel(options)};
  });
}

void poise_session_free(poise_session* session) { delete session; }

poise_status poise_session_describe(const poise_session* session, poise_session_info* info, poise_error* error) {
  return catch_errors(error, [&] {
    const poise::Session& text = dereference(session, "session").session;
    copy_struct_out(info, "info",
                    {sizeof(poise_session_info), text.vocabulary_size(), text.context(), text.position(),
                     text.has_tokenizer(), 0, text.weights().hidden_size(), text.weights().layers()});
  });
}

poise_status poise_session_prompt(const poise_session* session, const char* text, size_t size, poise_tokens* tokens,
                                  poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokens& out = dereference(tokens, "tokens");
    out = copy_tokens_out(dereference(session, "session").session.prompt(view_input(text, size)));
  });
}

poise_status poise_session_reset(poise_session* session, poise_error* error) {
  return catch_errors(error, [&] { dereference(session, "session").session.reset(); });
}

poise_status poise_session_truncate(poise_session* session, size_t position, poise_error* error) {
  return catch_errors(error, [&] { dereference(session, "session").session.truncate(position); });
}

poise_status poise_session_fork(const poise_session* session, poise_session** fork, poise_error* error) {
  return catch_errors(error, [&] {
    poise_session*& out = dereference(fork, "fork");
    const poise_session& handle = dereference(session, "session");
    out = new poise_session{handle.session.fork(), handle.cancel};
  });
}

poise_status poise_session_save(const poise_session* session, const char* path, int32_t overwrite, poise_error* error) {
  return catch_errors(
      error, [&] { dereference(session, "session").session.save(require_text(path, "path"), overwrite != 0); });
}

poise_status poise_session_load(poise_session* session, const char* path, poise_error* error) {
  return catch_errors(error, [&] { dereference(session, "session").session.load(require_text(path, "path")); });
}

poise_status poise_session_top_log_probabilities(const poise_session* session, size_t count, poise_log_probability* out,
                                                 poise_error* error) {
  return catch_errors(error, [&] {
    const std::span<poise_log_probability> places = view_items(out, count, "out");
    const auto best = poise::top_log_probabilities(dereference(session, "session").session.logits(), count);
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = i < best.size() ? poise_log_probability{best[i].token, 0, best[i].log_probability}
                                  : poise_log_probability{-1, 0, 0};
    }
  });
}

poise_status poise_session_feed(poise_session* session, const int32_t* tokens, size_t count, poise_error* error) {
  return catch_errors(error, [&] {
    poise_session& to = dereference(session, "session");
    const std::span<const poise::TokenId> text = view_items(tokens, count, "tokens");
    to.cancel.run([&](const std::stop_token& stop) { to.session.feed(text, stop); });
  });
}

poise_status poise_session_logits(const poise_session* session, const float** logits, size_t* count,
                                  poise_error* error) {
  return catch_errors(error, [&] {
    const float*& out = dereference(logits, "logits");
    size_t& number = dereference(count, "count");
    const std::span<const float> scores = dereference(session, "session").session.logits();
    out = scores.data();
    number = scores.size();
  });
}

poise_status poise_session_hidden_state(const poise_session* session, const float** state, size_t* count,
                                        poise_error* error) {
  return catch_errors(error, [&] {
    const float*& out = dereference(state, "state");
    size_t& number = dereference(count, "count");
    const std::span<const float> numbers = dereference(session, "session").session.hidden_state();
    out = numbers.data();
    number = numbers.size();
  });
}

poise_status poise_session_hidden_states(poise_session* session, const int32_t* tokens, size_t count, size_t layer,
                                         float* out, poise_error* error) {
  return catch_errors(error, [&] {
    if (count > 0) dereference(out, "out");
    poise_session& handle = dereference(session, "session");
    const std::span<const poise::TokenId> text = view_items(tokens, count, "tokens");
    handle.cancel.run(
        [&](const std::stop_token& stop) { std::ranges::copy(handle.session.hidden_states(text, layer, stop), out); });
  });
}

poise_status poise_model_sampling_defaults(const poise_model* model, poise_generate_options* options,
                                           poise_error* error) {
  return catch_errors(error, [&] {
    const poise_generate_options usual = POISE_GENERATE_OPTIONS_INIT;
    poise_generate_options filled = read_struct(dereference(options, "options"), usual);
    const poise::SamplingDefaults stated = poise::read_sampling_defaults(dereference(model, "model").model);
    const poise::SamplingOptions given{.temperature = filled.temperature,
                                       .top_k = filled.top_k,
                                       .top_p = filled.top_p,
                                       .min_p = filled.min_p,
                                       .repetition_penalty = filled.repetition_penalty};
    const poise::SamplingOptions sampling = poise::apply_sampling_defaults(stated, given);
    filled.temperature = sampling.temperature;
    filled.top_k = sampling.top_k;
    filled.top_p = sampling.top_p;
    filled.min_p = sampling.min_p;
    filled.repetition_penalty = sampling.repetition_penalty;
    copy_struct_out(options, "options", filled);
  });
}

poise_status poise_session_generate(poise_session* session, const poise_generate_options* options,
                                    int (*on_token)(void* user, int32_t token), void* user,
                                    poise_generation* generation, poise_error* error) {
  return catch_errors(error, [&] {
    const auto use = [&](poise::TokenId token) { return on_token == nullptr || on_token(user, token) == 0; };
    if (generation != nullptr) check_size(*generation);
    const poise::Generation done =
        dereference(session, "session").session.generate(read_generate_options(options), use);
    if (generation == nullptr) return;
    copy_struct_out(generation, "generation",
                    {sizeof(poise_generation), done.tokens.size(), to_c_reason(done.reason),
                     done.tokens.empty() ? -1 : done.tokens.back()});
  });
}

poise_status poise_session_log_probabilities(poise_session* session, const int32_t* tokens, size_t count, double* out,
                                             poise_error* error) {
  return catch_errors(error, [&] {
    if (count > 1) dereference(out, "out");
    poise_session& handle = dereference(session, "session");
    const std::span<const poise::TokenId> text = view_items(tokens, count, "tokens");
    handle.cancel.run(
        [&](const std::stop_token& stop) { std::ranges::copy(handle.session.log_probabilities(text, stop), out); });
  });
}

using namespace poise::capi;

struct poise_batch {
  poise::BatchGenerator batch;
  Cancel cancel;
  std::vector<poise::BatchGenerator::Finished> finished;  // the texts that ended in the last step
};

poise_status poise_batch_create(const poise_model* model, const poise_session_options* options, poise_batch** batch,
                                poise_error* error) {
  return catch_errors(error, [&] {
    poise_batch*& out = dereference(batch, "batch");
    const poise::Model& opened = dereference(model, "model").model;
    const poise::SessionOptions chosen = read_session_options(options);
    out = new poise_batch{poise::BatchGenerator(poise::load_weights(opened), chosen), Cancel(options), {}};
  });
}

void poise_batch_free(poise_batch* batch) { delete batch; }

poise_status poise_batch_prompt(const poise_batch* batch, const char* text, size_t size, poise_tokens* tokens,
                                poise_error* error) {
  return catch_errors(error, [&] {
    poise_tokens& out = dereference(tokens, "tokens");
    out = copy_tokens_out(dereference(batch, "batch").batch.prompt(view_input(text, size)));
  });
}

poise_status poise_batch_add(poise_batch* batch, const int32_t* tokens, size_t count,
                             const poise_generate_options* options, size_t* id, poise_error* error) {
  return catch_errors(error, [&] {
    poise::BatchGenerator& to = dereference(batch, "batch").batch;
    size_t& out = dereference(id, "id");
    const std::span<const poise::TokenId> text = view_items(tokens, count, "tokens");
    out = to.add({text.begin(), text.end()}, read_generate_options(options));
  });
}

poise_status poise_batch_count(const poise_batch* batch, size_t* count, poise_error* error) {
  return catch_errors(error, [&] { dereference(count, "count") = dereference(batch, "batch").batch.size(); });
}

poise_status poise_batch_step(poise_batch* batch, size_t* finished, poise_error* error) {
  return catch_errors(error, [&] {
    poise_batch& handle = dereference(batch, "batch");
    size_t& out = dereference(finished, "finished");
    handle.finished.clear();
    handle.cancel.run([&](const std::stop_token& stop) { handle.finished = handle.batch.step(stop); });
    out = handle.finished.size();
  });
}

poise_status poise_batch_finished(const poise_batch* batch, size_t index, poise_finished_text* text,
                                  poise_error* error) {
  return catch_errors(error, [&] {
    const auto& finished = dereference(batch, "batch").finished;
    dereference(text, "text");
    if (index >= finished.size())
      refuse_missing(fmt::format("there is no finished text {}; the last step ended {}", index, finished.size()));
    const poise::BatchGenerator::Finished& entry = finished[index];
    const auto& tokens = entry.generation.tokens;
    copy_struct_out(text, "text",
                    {sizeof(poise_finished_text), entry.id, tokens.data(), tokens.size(), lend_text(entry.text),
                     to_c_reason(entry.generation.reason), 0});
  });
}
