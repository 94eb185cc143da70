package chaos

import (
	"fmt"
	"os"
	"strings"
)

// arming holds the faults of the tracker's next life. The zero value has no faults.
type arming struct {
	// points configures failpoints, see failpoint_test.go.
	points string
	// failingSync is the index of the fsync or fdatasync of a thread that fails; 0 means none.
	failingSync int
}

// syncsSuffix is the suffix of the file that lists failed syncs.
const syncsSuffix = ".syncs"

// failSync returns a command prefix that makes a sync of the process fail, as on a broken disk. strace runs as a
// detached tracer, so the process keeps its PID.
func (a arming) failSync(traceFile string) []string {
	if a.failingSync == 0 {
		return nil
	}
	return []string{
		"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-A", "-o", traceFile,
		"-e", "trace=fsync,fdatasync", "-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d", a.failingSync),
	}
}

// failedSyncs counts the failed syncs in a file.
func failedSyncs(traceFile string) (int, error) {
	text, err := os.ReadFile(traceFile)
	if os.IsNotExist(err) {
		return 0, nil
	}
	return strings.Count(string(text), "(INJECTED)"), err
}
