/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gloo's collectives with the warm-up, the barriers and the columns of r2_bench:
 * mpirun .. gloo_bench NAME -m SIZE[,SIZE..] [-x N] [--seconds S] [--progress]
 *
 * A context of Gloo uses one NIC: rail0. Processes find each other by files in R2LAB_RUN_DIR, which
 * all hosts of a lab share during a run. Open MPI starts them and does nothing else.
 */
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr size_t LARGE_BYTES = 8192; // sizes above it are warmed up with fewer calls
constexpr double ASK_EVERY_S = 0.05; // rank 0 says how many calls follow until it is asked again

using context_t = std::shared_ptr<gloo::Context>;

struct arguments_t {
    std::string name;
    std::vector<size_t> sizes;
    long warmup = -1;
    double seconds = 1;
    bool progress = false;
};

struct call_t {
    context_t context;
    std::vector<float> send, recv; // of this rank
    size_t count;                  // elements: as the size of OSU
};

double now_s()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void sum(void *to, const void *a, const void *b, size_t n)
{
    gloo::sum<float>(to, a, b, n);
}

void allreduce(call_t &call)
{
    gloo::AllreduceOptions options(call.context);
    options.setInput(call.send.data(), call.count);
    options.setOutput(call.recv.data(), call.count);
    options.setReduceFunction(sum);
    gloo::allreduce(options);
}

void reduce(call_t &call)
{
    gloo::ReduceOptions options(call.context);
    options.setInput(call.send.data(), call.count);
    options.setOutput(call.recv.data(), call.count);
    options.setReduceFunction(sum);
    options.setRoot(0);
    gloo::reduce(options);
}

void bcast(call_t &call)
{
    gloo::BroadcastOptions options(call.context);
    options.setOutput(call.recv.data(), call.count);
    options.setRoot(0);
    gloo::broadcast(options);
}

void allgather(call_t &call)
{
    gloo::AllgatherOptions options(call.context);
    options.setInput(call.send.data(), call.count);
    options.setOutput(call.recv.data(), call.count * (size_t) call.context->size);
    gloo::allgather(options);
}

void alltoall(call_t &call)
{
    size_t all = call.count * (size_t) call.context->size;
    gloo::AlltoallOptions options(call.context);
    options.setInput(call.send.data(), all);
    options.setOutput(call.recv.data(), all);
    gloo::alltoall(options);
}

void barrier(call_t &call)
{
    gloo::BarrierOptions options(call.context);
    gloo::barrier(options);
}

const std::map<std::string, std::function<void(call_t &)>> calls = {
    {"allgather", allgather}, {"allreduce", allreduce}, {"alltoall", alltoall},
    {"barrier", barrier},     {"bcast", bcast},         {"reduce", reduce},
};

double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || '\0' != *end) {
        throw std::invalid_argument(std::string("no number: ") + text);
    }
    return value;
}

/* SIZE,SIZE.. or SIZE:SIZE, which is one. */
std::vector<size_t> sizes_of(const std::string &text)
{
    std::vector<size_t> sizes;
    std::stringstream words(text.substr(text.find(':') + 1));

    for (std::string word; std::getline(words, word, ',');) {
        sizes.push_back((size_t) number(word.c_str()));
    }
    return sizes;
}

arguments_t parse(int argc, char **argv)
{
    arguments_t made;

    if (argc < 2 || 0 == calls.count(argv[1])) {
        throw std::invalid_argument("a name: allgather, allreduce, alltoall, barrier, bcast or "
                                    "reduce");
    }
    made.name = argv[1];
    for (int i = 2; i < argc; ++i) {
        std::string word = argv[i];

        if ("--progress" == word) {
            made.progress = true;
        } else if (i + 1 == argc) {
            throw std::invalid_argument("what does " + word + " mean?");
        } else if ("-m" == word) {
            made.sizes = sizes_of(argv[++i]);
        } else if ("-x" == word) {
            made.warmup = (long) number(argv[++i]);
        } else if ("--seconds" == word) {
            made.seconds = number(argv[++i]);
        } else {
            throw std::invalid_argument("what does " + word + " mean?");
        }
    }
    if ("barrier" == made.name) {
        made.sizes = {0};
    }
    if (made.sizes.empty()) {
        throw std::invalid_argument("-m SIZE is missing");
    }
    return made;
}

std::string variable(const char *name)
{
    const char *value = getenv(name);

    if (nullptr == value) {
        throw std::runtime_error(std::string(name) + " is not set");
    }
    return value;
}

context_t connect()
{
    int rank = std::stoi(variable("OMPI_COMM_WORLD_RANK"));
    int ranks = std::stoi(variable("OMPI_COMM_WORLD_SIZE"));
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::transport::tcp::attr address;
    gloo::rendezvous::FileStore store(variable("R2LAB_RUN_DIR"));

    address.iface = "rail0";
    auto device = gloo::transport::tcp::CreateDevice(address);
    context->connectFullMesh(store, device);
    return context;
}

/* What rank 0 says, on all ranks. */
uint64_t agree(const context_t &context, uint64_t value)
{
    gloo::BroadcastOptions options(context);

    options.setOutput(&value, 1);
    options.setRoot(0);
    gloo::broadcast(options);
    return value;
}

/* Mean of a time over the ranks. */
double mean(const context_t &context, double value)
{
    double all = 0;
    gloo::AllreduceOptions options(context);

    options.setInput(&value, 1);
    options.setOutput(&all, 1);
    options.setReduceFunction(
        [](void *to, const void *a, const void *b, size_t n) { gloo::sum<double>(to, a, b, n); });
    gloo::allreduce(options);
    return all / context->size;
}

/* Calls of one size for some time, with a barrier between that is not timed.
 * @return seconds of a call, mean over calls and ranks. */
double measure(const arguments_t &arguments, call_t &call, size_t bytes)
{
    const auto &function = calls.at(arguments.name);
    bool speaks = arguments.progress && 0 == call.context->rank;
    double begin_s = now_s(), told_s = begin_s, in_calls_s = 0;
    uint64_t done = 0, block = 1;

    while (block > 0) {
        for (uint64_t i = 0; i < block; ++i, ++done) {
            double start_s = now_s();

            function(call);
            in_calls_s += now_s() - start_s;
            barrier(call);
            if (speaks && now_s() - told_s >= 1) {
                told_s = now_s();
                fprintf(stderr, "gloo_bench: %zu bytes, %.1f s, iteration %llu, -\n", bytes,
                        told_s - begin_s, (unsigned long long) done + 1);
            }
        }
        double passed_s = now_s() - begin_s;
        double left_s = arguments.seconds - passed_s;
        double each_s = passed_s / (double) done;

        block = left_s <= 0 ? 0 : (uint64_t) std::max(1.0, std::min(left_s, ASK_EVERY_S) / each_s);
        block = agree(call.context, block);
    }
    return mean(call.context, in_calls_s / (double) done);
}

void run_size(const arguments_t &arguments, const context_t &context, size_t bytes)
{
    size_t count = bytes / sizeof(float);
    bool all_send = "alltoall" == arguments.name;
    bool all_receive = all_send || "allgather" == arguments.name;
    size_t ranks = (size_t) context->size;
    call_t call = {context, std::vector<float>(count * (all_send ? ranks : 1), 1.0f),
                   std::vector<float>(count * (all_receive ? ranks : 1)), count};
    long warmup = arguments.warmup >= 0 ? arguments.warmup : bytes > LARGE_BYTES ? 10 : 200;

    for (long i = 0; i < warmup; ++i) {
        calls.at(arguments.name)(call);
        barrier(call);
    }
    double call_s = measure(arguments, call, bytes);

    if (0 == context->rank && 0 == bytes) {
        printf("  %15.2f\n", call_s * 1e6);
    } else if (0 == context->rank) {
        printf("%-16zu%15.2f\n", bytes, call_s * 1e6);
    }
    fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    try {
        arguments_t arguments = parse(argc, argv);
        context_t context = connect();

        if (0 == context->rank) {
            printf("# Gloo %s\n%s%15s\n", arguments.name.c_str(),
                   "barrier" == arguments.name ? "# " : "# Size          ", "Avg Latency(us)");
        }
        for (size_t bytes : arguments.sizes) {
            run_size(arguments, context, bytes);
        }
        call_t last = {context, {}, {}, 0};
        barrier(last);
    } catch (const std::invalid_argument &bad) {
        fprintf(stderr, "gloo_bench: %s\n", bad.what());
        return 2;
    } catch (const std::exception &bad) {
        fprintf(stderr, "gloo_bench: %s\n", bad.what());
        return 1;
    }
    return 0;
}
