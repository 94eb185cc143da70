// Package progress shows a person how a job comes along: live on a terminal, as sparse lines elsewhere.
package progress
