package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// app is the state shared by all commands.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// binary is standard output for files. stdout and stderr take text, without control characters.
	binary io.Writer
	// started is set once a command's own work has begun. Earlier errors are usage errors.
	started bool
	// asJSON is set by --json.
	asJSON bool
	// serves is set for a service, for which a signal is a successful end.
	serves bool
}

const rootLong = `Tilth tunes neural-network kernels on real devices.

It splits an ONNX model into tasks, searches for the fastest schedule of each by
compiling and measuring candidates on the device, remembers the best ones, and
uses them to compile the model into a package.

A file named - is standard input or standard output. The exit status is 0 for success,
1 for failure, 2 for wrong usage, 3 for a test that needs more time (tilth guard), and
130 after an interrupt (143 after SIGTERM). A service that is asked to stop exits with 0.`

const rootExample = `  tilth model resnet-18 -o resnet18.onnx       write a test model
  tilth tune resnet18.onnx --time 5m           tune it on this machine
  tilth compile resnet18.onnx -o resnet18.tar  compile it with the best schedules
  tilth run resnet18.tar --print-time          run it`

// firstSteps is printed without a command.
const firstSteps = `Tilth tunes neural-network kernels on real devices. Three ways to begin:

  Tune a model:
    tilth model resnet-18 -o resnet18.onnx       a test model; any ONNX file will do
    tilth tune resnet18.onnx --time 5m

    tilth doctor                                 check this machine

  Compile a package, and run it:
    tilth compile resnet18.onnx -o resnet18.tar
    tilth run resnet18.tar --print-time

  Start a farm, each command in a terminal of its own:
    tilth tracker
    tilth tuner --tracker 127.0.0.1:9190
    tilth builder --tracker 127.0.0.1:9190
    tilth runner --tracker 127.0.0.1:9190
    tilth tune resnet18.onnx --tracker 127.0.0.1:9190

All commands: tilth --help. One command, with examples: tilth COMMAND --help.
`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use: "tilth", Short: "Tune neural-network kernels on real devices", Long: rootLong, Example: rootExample,
		Version: thisBuild().String(), SilenceErrors: true, SilenceUsage: true,
	}
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(root, args[0])
		}
		_, err := io.WriteString(a.stdout, firstSteps)
		return err
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddGroup(
		&cobra.Group{ID: groupModel, Title: "Tune and run models:"},
		&cobra.Group{ID: groupFarm, Title: "Look after a farm:"},
		&cobra.Group{ID: groupService, Title: "Services of a farm:"},
	)
	add(root, groupModel, newModel(a), newTasks(a), newTune(a), newCompile(a), newRun(a),
		newCompare(a), newGuard(a), newCheck(a), branch("package", "Look at packages", newPackageShow(a)),
		branch("records", "Look up, list, export, import, exchange and prune measurements",
			newRecordsBest(a), newRecordsList(a), newRecordsExport(a), newRecordsImport(a), newRecordsSync(a), newRecordsPrune(a), newRecordsVerify(a), newRecordsCompact(a), newRecordsDoctor(a)),
		branch("kernels", "Check kernels that you wrote, and print what tasks compute", newKernelsCheck(a), newKernelsTasks(a)),
		newTargets(a), newDoctor(a))
	add(root, groupFarm, newJobs(a),
		branch("devices", "Manage a farm's devices: which get work, and what they can be tuned for",
			newDevicesList(a), newDevicesShow(a), newDevicesCordon(a), newDevicesUncordon(a), newDevicesDrain(a), newDevicesRecalibrate(a)),
		branch("board", "Prepare boards without an operating system", newBoardMonitor(a)))
	add(root, groupService, newTracker(a), newTuner(a), newBuilder(a), newRunner(a), newHealth(a))
	root.AddCommand(newCheckServer(a), newRunServer(a), newModelServer(a), newSign(a), newVerify(a), newVersion(a))
	root.SetUsageFunc(usage)
	root.SetHelpFunc(help)
	root.SetFlagErrorFunc(flagError)
	rewordErrors(root)
	checkValues(root)
	completeAll(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	refuseUnknownTopics(root)
	addHelpAll(root)
	return root
}

const (
	groupModel   = "model"
	groupFarm    = "farm"
	groupService = "service"
)

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// leaf sets the work of a command, which takes no arguments unless c.Args is set.
func (a *app) leaf(c *cobra.Command, work func(ctx context.Context, args []string) error) *cobra.Command {
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		a.started = true
		if err := fromEnvironment(c); err != nil {
			return err
		}
		if err := checkOutputs(c); err != nil {
			return err
		}
		return work(c.Context(), args)
	}
	return c
}

// branch returns a command that only has subcommands.
func branch(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	c.AddCommand(commands...)
	c.RunE = helpOfBranch
	return c
}

// helpOfBranch prints the help of a command that only has subcommands.
func helpOfBranch(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return c.Help()
}

// refuseUnknownTopics has 'tilth help' and 'tilth completion' refuse what they do not know.
func refuseUnknownTopics(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, helpOfBranch
		case "help":
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err == nil && len(rest) > 0 {
					err = unknownCommand(found, rest[0])
				}
				if err != nil {
					return err
				}
				return found.Help()
			}
		}
	}
}

// logFlag is the log level of a command.
type logFlag struct{ level slog.Level }

func (f *logFlag) add(c *cobra.Command, level slog.Level) {
	f.level = level
	c.Flags().Var(f, "log-level", "lowest level to log: debug, info, warn or error")
}

// Set implements pflag.Value.
func (f *logFlag) Set(text string) error {
	return f.level.UnmarshalText([]byte(text))
}

// String implements pflag.Value.
func (f *logFlag) String() string { return strings.ToLower(f.level.String()) }

// Type implements pflag.Value.
func (f *logFlag) Type() string { return "level" }

func (f *logFlag) logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: f.level}))
}

// dataDir returns the folder of the user's data.
func dataDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tilth"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for data: %w: set XDG_DATA_HOME, or name the file", err)
	}
	return filepath.Join(home, ".local", "share", "tilth"), nil
}

// cacheDir returns the folder of reproducible data.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for caches: %w: set XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "tilth"), nil
}
