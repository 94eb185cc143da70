// Package sketchtest provides workloads and targets for tests of sketches.
package sketchtest
