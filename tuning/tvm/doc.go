// Package tvm reads tuning logs of TVM, those of AutoTVM and of the auto-scheduler (Ansor), as seeds of searches. What
// it knows of the formats, and of the templates that AutoTVM's knobs belong to, is that of TVM 0.6 to 0.19. Begin with
// Read.
package tvm
