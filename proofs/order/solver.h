// Proves goals with Z3, and prints a line of JSON for each goal.
#pragma once
#include <z3++.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "term.h"

namespace maxops::proofs {

inline int unproved = 0;

inline void prove(const std::string& name, const z3::expr& claim) {
    const auto begin = std::chrono::steady_clock::now();
    z3::solver solver(context());
    z3::params limits(context());
    limits.set("timeout", 60'000U);
    solver.set(limits);
    solver.add(!claim);
    const z3::check_result found = solver.check();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const char* verdict = found == z3::unsat ? "proved" : found == z3::sat ? "refuted" : "unknown";
    unproved += found != z3::unsat;
    std::printf("{\"goal\":\"%s\",\"verdict\":\"%s\",\"seconds\":%.3f", name.c_str(), verdict, took.count());
    if (found == z3::sat) {  // print a counterexample
        std::printf(",\"values\":{");
        const z3::model model = solver.get_model();
        for (unsigned i = 0; i < model.num_consts(); ++i) {
            const z3::func_decl value = model.get_const_decl(i);
            std::printf("%s\"%s\":\"%s\"", i > 0 ? "," : "", value.name().str().c_str(),
                        model.get_const_interp(value).to_string().c_str());
        }
        std::printf("}");
    }
    std::printf("}\n");
    std::fflush(stdout);
}

}  // namespace maxops::proofs
