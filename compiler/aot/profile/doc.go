// Package profile says where a model's time goes: what each kernel call takes, against the machine's limits. Begin
// with Of.
package profile
