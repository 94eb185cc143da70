// Package farm runs the farms that docker-compose.yml and deploy/ describe, with jobs on them.
package farm

import (
	"os"
	"testing"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// root is the repository.
const root = "../../.."

func TestMain(m *testing.M) { os.Exit(container.Main(m)) }
