// Command models compares compiled models with ONNX Runtime, and writes a table of all that was compared. lab/bench/run.sh
// builds it as .tools/bench/bench:
//
//	bench [FLAGS] [MODEL[:INPUTS.npz] ...]    tune, compile and compare models; go on where an earlier run ended
//	bench FORM [FLAGS] [MODEL ...]            decoding, fast or quantised: without tuning, beside other packages of ours
//	bench table [FLAGS]                       print the table of what was compared so far
//	bench trials LOG.jsonl                    say what a trial of tuning cost
//
// Two more forms are for its own use: "compare" is one comparison in a process of its own, "serve" is a contender.
package main
