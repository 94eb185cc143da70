// Package gauss implements Gaussian process regression: predictions with uncertainties from few observations.
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1. The kernel
// is Matérn's with ν = 3/2 (equation 4.17) and one length per dimension, plus a kernel of linear trends
// (section 2.7).
package gauss
