// Package sketchtest has workloads and targets for tests of sketches.
package sketchtest
