package mutate

import "slices"

// restored mutates promises 1 and 2 on backups, verification and lost lives.
var restored = slices.Concat(
	in("records/bolt", []mutation{
		{
			name: "verifying passes over rows whose checksum is wrong", file: "verify.go",
			from: "\t\t\tr.damaged(err)\n\t\t\treturn\n", to: "\t\t\treturn\n",
			test: "TestADamagedBackupIsNotRestored",
		},
		{
			name: "a backup counts whatever was found in it", file: "backup.go",
			from: "return report, report.Failure(path)", to: "return report, nil",
			test: "TestABackupThatIsDamagedDoesNotCount",
		},
		{
			name: "a backup is restored under a tracker that runs", file: "restore.go",
			from: "case errors.Is(err, records.ErrLocked):\n\t\treturn heldFile{}, fmt.Errorf(\"%w: stop the tracker first\", records.ErrLocked)",
			to:   "case errors.Is(err, records.ErrLocked):\n\t\treturn heldFile{}, nil",
			test: "TestARestoredBackupSaysWhatIsLost",
		},
		{
			name: "what a backup replaces is gone", file: "restore.go",
			from: "os.Link(path, r.Aside)", to: "os.WriteFile(r.Aside, nil, 0o600)",
			test: "TestARestoredBackupSaysWhatIsLost",
		},
		{
			name: "records of a workload that the backup has are not lost", file: "loss.go",
			from: "if number == nil || !rows.has(", to: "if number == nil && !rows.has(",
			test: "TestARestoredBackupSaysWhatIsLost",
		},
		{
			name: "a restored backup goes on with the life before", file: "restore.go",
			from: "SealCopy(ctx, fresh, made.ModTime()); err", to: "Verify(ctx, fresh); err",
			test: "TestAFileThatNobodyMarkedIsRestoredAsACopy",
		},
	}),
	[]mutation{
		{
			name: "all lives have one name", file: "records/generation.go",
			from: "strings.ToLower(rand.Text()[:generationLetters])", to: "strings.ToLower(rand.Text()[:0] + \"AAAAAA\")",
			pkg: "./tracker", test: "TestNothingThatALostLifeHandedOutIsAccepted",
		},
		{
			name: "what follows a transaction that could not begin waits for it", file: "records/bolt/open.go",
			from: "if err := db.lost(); err != nil {\n\t\treturn err\n\t}\n\tbegan := false", to: "began := false",
			pkg: "./records/bolt", test: "TestAFileWithoutItsFirstPagesBlocksNobody",
		},
		{
			name: "a replaced history is told from where the old one was left", file: "tracker/services/watch_job.go",
			from: "proto.Equal(events[0].GetAt(), after)", to: "events[0].GetAt() != nil",
			pkg: "./tracker", test: "TestAWatcherIsToldThatAJobsHistoryWasReplaced",
		},
		{
			name: "a restored backup honours the sessions of the lost life", file: "records/bolt/generation.go",
			from: "return errors.Join(tx.voidSessions(), meta.Delete(keyCopied))", to: "return meta.Delete(keyCopied)",
			pkg: "./tracker", test: "TestNothingThatALostLifeHandedOutIsAccepted",
		},
		{
			name: "who asks for a best that is damaged gets none", file: "records/bolt/best_allowed.go",
			from: "if !tx.skipDamage(err) {\n\t\treturn key, r, err", to: "if !tx.skipDamage(err) || err != nil {\n\t\treturn key, r, err",
			pkg: "./tracker", test: "TestADamagedBestGivesWayToTheNext",
		},
		{
			name: "a job of which a batch is damaged goes on", file: "tracker/state/recover_damaged.go",
			from: "\t\t\tlost[id] = j\n", to: "",
			pkg: "./tracker", test: "TestADamagedJobEndsAndTheOthersGoOn",
		},
	},
)
