// MAXOPS_ISA: the namespace of the instruction set for which kernels are compiled.
//
// All kernel code is in an anonymous namespace inside maxops::MAXOPS_ISA, and calls no function of the
// standard library. The linker therefore cannot replace one instruction set's instantiation of a template
// with that of another.
#pragma once

#ifndef MAXOPS_ISA  // the build defines it, except for tools that open a single header
#define MAXOPS_ISA baseline
#endif
