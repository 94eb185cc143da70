// Package profile tells where a model's time goes: what each kernel call takes, and what the machine could do at best.
package profile
