package farm

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/tracker"
)

// minDescriptors is the smallest limit on open files with which a tracker starts.
const minDescriptors = 128

// FitDescriptors returns the limits with at most the connections that the process's limit on open files allows. It
// logs a warning if they are fewer than configured.
func FitDescriptors(l connlimit.Limits, log *slog.Logger) (connlimit.Limits, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit on open files is unknown", "error", err)
		return l, nil
	}
	fitted, err := connectionsWithin(l, limit.Cur) // Go programs raise their soft limit to the hard one
	if configured := l.WithDefaults().Connections; err == nil && fitted.Connections < configured {
		log.Warn("the limit on open files allows fewer connections than --max-connections", "open_files", limit.Cur,
			"max_connections", configured, "connections", fitted.Connections, "hint", tracker.FilesHint)
	}
	return fitted, err
}

// connectionsWithin reduces the connections so that a process with a limit on open files keeps a quarter of them for
// files, and serves pages while calls have all of theirs.
func connectionsWithin(l connlimit.Limits, files uint64) (connlimit.Limits, error) {
	if files < minDescriptors {
		return l, fmt.Errorf("the limit on open files is %d, and a tracker needs at least %d: %s", files, minDescriptors, tracker.FilesHint)
	}
	l = l.WithDefaults()
	quarter := files / 4
	l.WebConnections = int(min(uint64(l.WebConnections), quarter))
	l.Connections = int(min(uint64(l.Connections), files-quarter-uint64(l.WebConnections)))
	return l, nil
}
