// Package config sets a command's flags from a YAML file and from the environment. The file overrides a
// flag's default, the environment the file, and the command line both. Every flag is a key of the file and a variable
// TILTH_NAME, so new flags need no registration. Start with Apply.
package config
