package chaos

import (
	"fmt"
	"os"
	"strings"
)

// arming holds the faults that a life of the tracker starts with. The zero value is none.
type arming struct {
	// points are failpoints, as the package failpoint reads them.
	points string
	// failingSync is the index of the fsync or fdatasync of a thread that fails; 0 means none.
	failingSync int
}

// syncsSuffix ends the name of the file that lists failed syncs.
const syncsSuffix = ".syncs"

// failSync begins a command line whose process sees a sync fail as it would on a disk that cannot write. The process
// stays the one that was started: strace follows it from beside.
func (a arming) failSync(told string) []string {
	if a.failingSync == 0 {
		return nil
	}
	return []string{
		"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-A", "-o", told,
		"-e", "trace=fsync,fdatasync", "-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d", a.failingSync),
	}
}

// failedSyncs counts the syncs that failed.
func failedSyncs(told string) (int, error) {
	text, err := os.ReadFile(told)
	if os.IsNotExist(err) {
		return 0, nil
	}
	return strings.Count(string(text), "(INJECTED)"), err
}
