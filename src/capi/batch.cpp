#include <poise/batch.hpp>

#include "capi/handles.hpp"
#include "capi/running.hpp"

using namespace poise::capi;

struct poise_batch {
  poise::BatchGenerator batch;
  Cancel cancel;
  std::vector<poise::BatchGenerator::Finished> finished;  // in the last step
};

poise_status poise_batch_create(const poise_model* model, const poise_session_options* options, poise_batch** batch,
                                poise_error* error) {
  return guard(error, [&] {
    poise_batch*& out = at(batch, "batch");
    const poise::Model& of = at(model, "model").model;
    const poise::SessionOptions chosen = session_options(options);
    out = new poise_batch{poise::BatchGenerator(poise::load_weights(of), chosen), Cancel(options), {}};
  });
}

void poise_batch_free(poise_batch* batch) { delete batch; }

poise_status poise_batch_prompt(const poise_batch* batch, const char* text, size_t size, poise_tokens* tokens,
                                poise_error* error) {
  return guard(error, [&] {
    poise_tokens& out = at(tokens, "tokens");
    out = give_tokens(at(batch, "batch").batch.prompt(input_text(text, size)));
  });
}

poise_status poise_batch_add(poise_batch* batch, const int32_t* tokens, size_t count,
                             const poise_generate_options* options, size_t* id, poise_error* error) {
  return guard(error, [&] {
    poise::BatchGenerator& to = at(batch, "batch").batch;
    size_t& out = at(id, "id");
    const std::span<const poise::TokenId> text = items(tokens, count, "tokens");
    out = to.add({text.begin(), text.end()}, generate_options(options));
  });
}

poise_status poise_batch_count(const poise_batch* batch, size_t* count, poise_error* error) {
  return guard(error, [&] { at(count, "count") = at(batch, "batch").batch.size(); });
}

poise_status poise_batch_step(poise_batch* batch, size_t* finished, poise_error* error) {
  return guard(error, [&] {
    poise_batch& of = at(batch, "batch");
    size_t& out = at(finished, "finished");
    of.finished.clear();
    of.cancel.run([&](const std::stop_token& stop) { of.finished = of.batch.step(stop); });
    out = of.finished.size();
  });
}

poise_status poise_batch_finished(const poise_batch* batch, size_t index, poise_finished_text* text,
                                  poise_error* error) {
  return guard(error, [&] {
    const auto& finished = at(batch, "batch").finished;
    at(text, "text");
    if (index >= finished.size())
      no_such(fmt::format("there is no finished text {}; the last step ended {}", index, finished.size()));
    const poise::BatchGenerator::Finished& of = finished[index];
    const auto& tokens = of.generation.tokens;
    give_struct(text, "text",
                {sizeof(poise_finished_text), of.id, tokens.data(), tokens.size(), lend(of.text),
                 c_reason(of.generation.reason), 0});
  });
}
