/* The product of rounded rows with a table of the caller's choice; pl_gemm_exec takes the machine's. */
#ifndef PL_BACKEND_GEMM_ROUNDED_H
#define PL_BACKEND_GEMM_ROUNDED_H

#include "backend/calls.h"
#include "kernels/gemm_rounded.h"

uint64_t pl_gemm_rounded_workspace_bytes(const pl_rounded_kernels *, const pl_gemm_call *, pl_team);
void pl_gemm_rounded_exec(const pl_rounded_kernels *, const pl_gemm_call *, void *workspace, pl_team);

#endif
