package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// compileFlags are the flags of tune that compile takes in the same sense: with them it finds what was tuned.
var compileFlags = []string{
	"shape", "target", "threads", "numerics", "storage", "weights", "records", "compiler", "cost-model",
	"tracker", "tls-ca", "tls-cert", "tls-key", "token-file",
}

// nextCommands are the commands that compile models after they were tuned with these flags. A model from standard
// input is gone, and has none.
func nextCommands(paths []string, flags *pflag.FlagSet) (commands []string) {
	for _, path := range paths {
		if path == stdio {
			continue
		}
		words := []string{"tilth", "compile", shellWord(path), "-o", shellWord(modelName(path) + ".tar")}
		flags.Visit(func(f *pflag.Flag) {
			if slices.Contains(compileFlags, f.Name) {
				words = append(words, shellWord("--"+f.Name+"="+flagText(f)))
			}
		})
		commands = append(commands, strings.Join(words, " "))
	}
	return commands
}

// flagText is a flag's value as it was given: lists are shown in brackets.
func flagText(f *pflag.Flag) string {
	text := f.Value.String()
	if f.Value.Type() == "stringToString" {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	return text
}

// shellWord quotes text for a shell where it needs that.
func shellWord(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
