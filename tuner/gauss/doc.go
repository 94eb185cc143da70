// Package gauss predicts by Gaussian processes: from few observations, each prediction with its uncertainty.
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1; the kernel is
// Matérn's with ν = 3/2 (equation 4.17) and a length for each dimension, and that of linear trends (section 2.7).
package gauss
