// Package unroll is the pass that writes unrolled loops out and cuts vector loops to the lanes that there are.
package unroll
