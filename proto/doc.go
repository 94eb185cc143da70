// Package proto is where the wire's Go code is generated; the code itself is in tilth/v1.
package proto
