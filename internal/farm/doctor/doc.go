// Package doctor examines a machine for what tuning on it needs, and for what makes its measurements worse: each
// finding says what it costs, and the remedy. Begin with Machine.Examine.
package doctor
