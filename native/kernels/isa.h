// The namespace of the instruction set that a file of kernels is compiled for.
//
// Everything that kernels are made of lies in an anonymous namespace inside maxops::MAXOPS_ISA, and calls no
// function of the standard library: the linker can then not take one instruction set's compilation of a
// template for another's.
#pragma once

#ifndef MAXOPS_ISA  // the build says it; this is for a header opened by itself
#define MAXOPS_ISA baseline
#endif
