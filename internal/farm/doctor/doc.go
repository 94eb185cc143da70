// Package doctor checks whether a machine meets the needs of tuning and what degrades its measurements. Each
// finding has its cost and remedy. Start with Machine.Examine.
package doctor
