// Package tvm reads tuning logs of TVM, from AutoTVM and the auto-scheduler (Ansor), as seeds of searches. It
// supports the formats and AutoTVM templates of TVM 0.6 to 0.19. Start with Read.
package tvm
