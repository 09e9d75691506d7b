/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Stand-in for a header that ompi/op/op.h includes and that Open MPI does not install.
 *
 * Found last (-idirafter): the real one is used where it is installed. Only the two conversions
 * that op.h uses are given here.
 */
#ifndef R2_STANDIN_FINT_2_INT_H
#define R2_STANDIN_FINT_2_INT_H

#define OMPI_INT_2_FINT(a) ((MPI_Fint) (a))
#define OMPI_FINT_2_INT(a) ((int) (a))

#endif
