// Package bounds defines the maximum size of requests to a tracker: of every string, list and map of every message,
// and of each method's message. Checker checks a message before it is decoded. A second table estimates the memory for
// making each method's answer.
package bounds
