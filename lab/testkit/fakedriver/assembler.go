package fakedriver

import "os"

// assembler is a stand-in for ptxas. Its cubin is PTX prefixed with the magic word of programs; the fake driver
// executes it like PTX. It refuses input that contains the word "refused".
const assembler = `#!/bin/sh
if [ "$1" = --version ]; then
  echo "ptxas: a fake"
  echo "Cuda compilation tools, release 12.4, V12.4.131"
  exit
fi
if grep -q refused "$2"; then
  echo "ptxas $2, line 7; error   : Unknown symbol 'refused'"
  echo "ptxas fatal   : Ptx assembly aborted due to errors"
  exit 255
fi
printf '\177ELF' >"$4"
cat "$2" >>"$4"
`

// WriteAssembler writes a command that stands in for NVIDIA's assembler, version 12.4.131.
func WriteAssembler(path string) error { return os.WriteFile(path, []byte(assembler), 0o700) } // a command
