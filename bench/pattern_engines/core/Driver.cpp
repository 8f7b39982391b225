// One CEQL query on a file of events, in one thread: what `bench/core.py` measures of CORE.
//
//     driver EVENTS TYPES QUERY SHIFT PASSES enumerate|detect
//
// EVENTS holds records of 32 bytes: ts, type and key as int64, the value as float64; TYPES names the types by
// number, with commas between. All events are sent in each pass, SHIFT milliseconds later than in the one before.
// A line for each pass: complex events, the events in them, the sum of their ids, and seconds of processor time;
// `detect` leaves out the enumeration.
//
// CORE's server gives a query a thread and two queues. They are left out: events go to the query itself, those
// of its types only, as the server's dispatcher sorts them out.
#include "quill/Backend.h"
#include "quill/Frontend.h"
#include "quill/sinks/NullSink.h"

#include "core_server/internal/coordination/catalog.hpp"
#include "core_server/internal/coordination/query_catalog.hpp"
#include "core_server/internal/interface/modules/query/query_types/generic_query.hpp"
#include "core_server/internal/interface/modules/query/query_types/partition_by_query.hpp"
#include "core_server/internal/interface/modules/query/query_types/simple_query.hpp"
#include "core_server/internal/parsing/ceql_query/parser.hpp"
#include "core_server/internal/parsing/stream_declaration/parser.hpp"

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace CORE;
using Internal::Interface::Module::Query::GenericQuery;
using Internal::Interface::Module::Query::PartitionByQuery;
using Internal::Interface::Module::Query::SimpleQuery;
using Output = std::optional<Internal::tECS::Enumerator>;

// A query's own steps are private: its thread calls them. An explicit instantiation may name them.
template <typename Tag, typename Tag::Type Member>
struct Opened {
  friend typename Tag::Type member(Tag) { return Member; }
};

struct Create {
  using Type = void (GenericQuery::*)(Internal::CEQL::Query&&);
  friend Type member(Create);
};

struct Process {
  using Type = Output (GenericQuery::*)(Types::EventWrapper&&);
  friend Type member(Process);
};

template struct Opened<Create, &GenericQuery::create_query>;
template struct Opened<Process, &GenericQuery::process_event>;

struct Record {
  std::int64_t ts, type, key;
  double value;
};

using Events = std::vector<std::shared_ptr<const Types::Event>>;

std::vector<Record> read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw std::runtime_error(std::string("cannot read ") + path);
  }
  std::vector<Record> found(static_cast<std::size_t>(file.tellg()) / sizeof(Record));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(found.data()),
            static_cast<std::streamsize>(found.size() * sizeof(Record)));
  return found;
}

std::string declaration(const std::string& types) {
  std::istringstream names(types);
  std::string text;
  for (std::string name; std::getline(names, name, ',');) {
    text += (text.empty() ? "" : ", ") + ("EVENT " + name)
            + " { ts:int, id:int, k:int, v:double }";
  }
  return "CREATE STREAM S { " + text + " }";
}

Events events(const std::vector<Record>& records,
              const Types::StreamInfo& stream,
              std::int64_t later) {
  Events found;
  found.reserve(records.size());
  for (std::size_t number = 0; number < records.size(); number++) {
    const Record& record = records[number];
    std::vector<std::unique_ptr<Types::Value>> values;
    values.push_back(std::make_unique<Types::IntValue>(record.ts + later));
    values.push_back(std::make_unique<Types::IntValue>(static_cast<std::int64_t>(number)));
    values.push_back(std::make_unique<Types::IntValue>(record.key));
    values.push_back(std::make_unique<Types::DoubleValue>(record.value));
    found.push_back(std::make_shared<const Types::Event>(
      stream.events_info.at(static_cast<std::size_t>(record.type)).id, std::move(values)));
  }
  return found;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void pass(GenericQuery& query,
          const Internal::QueryCatalog& catalog,
          const Events& events,
          bool enumerated) {
  std::uint64_t matches = 0, members = 0;
  std::int64_t ids = 0;
  const double begun = processor_seconds();
  for (const auto& event : events) {
    if (!catalog.is_unique_event_id_relevant_to_query(event->get_event_type_id())) {
      continue;
    }
    Output output = (query.*member(Process{}))(Types::EventWrapper(event));
    if (!output.has_value() || !enumerated) {
      continue;
    }
    for (const Internal::tECS::ComplexEvent& match : output.value()) {
      matches++;
      members += match.eventss.size();
      for (const Types::EventWrapper& one : match.eventss) {
        ids += static_cast<const Types::IntValue&>(*one.event->attributes[1]).val;
      }
    }
  }
  const double seconds = processor_seconds() - begun;
  std::printf("matches %llu members %llu ids %lld cpu %.6f\n",
              static_cast<unsigned long long>(matches),
              static_cast<unsigned long long>(members),
              static_cast<long long>(ids),
              seconds);
}

void run(char** arguments) {
  // Everything in CORE asks for this logger. Its own settings keep a log of every node that is allocated.
  quill::Frontend::create_or_get_logger(
    "root", quill::Frontend::create_or_get_sink<quill::NullSink>("nothing"))
    ->set_log_level(quill::LogLevel::None);

  Internal::Catalog catalog;
  const Types::StreamInfo stream = catalog.add_stream_type(
    Internal::Parsing::StreamParser::parse_stream(declaration(arguments[2]), catalog));
  Internal::CEQL::Query parsed = Internal::Parsing::QueryParser::parse_query(arguments[3],
                                                                             catalog);
  const Internal::QueryCatalog query_catalog(catalog, parsed);
  moodycamel::BlockingReaderWriterQueue<Types::EventWrapper> unused(1);
  // Never deleted: a query's end waits for its thread, which was not started.
  GenericQuery* query = nullptr;
  if (parsed.partition_by.partition_attributes.empty()) {
    query = new SimpleQuery(query_catalog, "", nullptr, unused);
  } else {
    query = new PartitionByQuery(query_catalog, "", nullptr, unused);
  }
  (query->*member(Create{}))(std::move(parsed));

  const std::vector<Record> records = read(arguments[1]);
  const std::int64_t shift = std::atoll(arguments[4]);
  const std::int64_t passes = std::atoll(arguments[5]);
  const bool enumerated = std::string(arguments[6]) == "enumerate";
  for (std::int64_t number = 0; number < passes; number++) {
    pass(*query, query_catalog, events(records, stream, number * shift), enumerated);
  }
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) {
    std::fprintf(stderr, "driver EVENTS TYPES QUERY SHIFT PASSES enumerate|detect\n");
    return 2;
  }
  try {
    run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
