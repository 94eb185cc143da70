// Package proto is where the wire's Go code is generated from; the code itself is in tilth/v1.
package proto
