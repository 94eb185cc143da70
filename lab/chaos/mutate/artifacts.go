package mutate

// artifacts mutates promises 1 and 7 on the artifact store: it cannot be filled, and its content is intact.
var artifacts = in("internal/artifact", []mutation{
	{
		name: "what is announced takes room", file: "put.go",
		from: "err = s.grow(u, int64(len(b)))", to: "err = s.grow(u, sizeBytes)",
		test: "TestAnUploadThatAnnouncesAllOfTheRoomEvictsNothingBeforeBytesCome",
	},
	{
		name: "what comes of an upload takes no room", file: "upload.go",
		from: "\tu.room += more\n", to: "\tmore = 0\n",
		test: "TestAnUploadThatAnnouncesAllOfTheRoomEvictsNothingBeforeBytesCome",
	},
	{
		name: "a tiny file takes no more of a disk than its bytes", file: "file.go",
		from: "return inodeBytes + blocks*blockBytes", to: "return sizeBytes + 0*blocks",
		test: "TestTinyArtifactsCountWhatTheyTakeOfADisk",
	},
	{
		name: "who uploads most pushes out the others", file: "owner.go",
		from: "own.loose+need > max(s.CapBytes/greedyShare, largest.loose)", to: "own.loose+need > 1000*max(s.CapBytes/greedyShare, largest.loose)",
		test: "TestAnUploadThatTakesMoreThanAnybodyHasPushesOutNobody",
	},
	{
		name: "who has least loses first", file: "owner.go",
		from: "largest == nil || a.loose > largest.loose ||", to: "largest == nil || a.loose < largest.loose ||",
		test: "TestWhoHasLittleGetsRoomFromWhoHasMost",
	},
	{
		name: "what is needed may be pushed out", file: "owner.go",
		from: "if s.pins[f.digest] == 0 {", to: "if s.pins[f.digest] >= 0 {",
		test: "TestTheLeastRecentlyUsedGoesFirstButNothingInUse",
	},
	{
		name: "an identity has any number of unfinished uploads", file: "upload.go",
		from: "if a.uploads >= s.Uploads &&", to: "if a.uploads >= 1000*s.Uploads &&",
		test: "TestManyTinyUploadsFillNoDisk",
	},
	{
		name: "an identity's unfinished uploads take any number of bytes", file: "upload.go",
		from: "for a.unfinished+need > s.UploadBytes {", to: "for a.unfinished+need > 1000*s.UploadBytes {",
		test: "TestUnfinishedBytesOfAnIdentityAreBounded",
	},
	{
		name: "an upload that nobody resumes is kept for ever", file: "maintain.go",
		from: "now.Sub(f.used) >= s.KeepParts;", to: "now.Sub(f.used) >= 1000*s.KeepParts;",
		test: "TestPartsThatNobodyResumesExpire",
	},
	{
		name: "a file of which a sync failed is believed", file: "seal.go",
		from: "\tu.out = nil\n\tif err != nil {\n\t\treturn Blob{}, err\n\t}\n\tb :=", to: "\tu.out = nil\n\t_ = err\n\tb :=",
		test: "TestAFailedSyncEndsTheFilesLife",
	},
	{
		name: "a part of which a sync failed is resumed", file: "seal.go",
		from: "err = errors.Join(u.out.Sync(), u.out.Close())\n\t\tu.out", to: "_ = errors.Join(u.out.Sync(), u.out.Close())\n\t\tu.out",
		test: "TestAFailedSyncEndsTheFilesLife",
	},
	{
		name: "a name need not be on the disk", file: "folder.go",
		from: "return b, f.fs.SyncDir(filepath.Dir(b.Name))", to: "return b, nil",
		test: "TestAnArtifactOutlivesAPowerCutOnceItIsStored",
	},
	{
		name: "an upload that was under way when the process ended is resumed", file: "scan.go",
		from: "name, is = strings.CutSuffix(name, partSuffix)", to: "name, is = strings.CutSuffix(strings.Replace(name, uploadSuffix, partSuffix, 1), partSuffix)",
		test: "TestAnUploadThatWasUnderWayWhenTheProcessEndedIsNotBelieved",
	},
	{
		name: "bytes need not have their digest", file: "seal.go",
		from: "if hex.EncodeToString(u.sum.Sum(nil)) != u.digest {", to: "if hex.EncodeToString(u.sum.Sum(nil)) == \"\" {",
		test: "TestBadUploadsLeaveNothing",
	},
	{
		name: "what somebody wrote to is believed", file: "check.go",
		from: "|| !s.blobs.Written(b).Equal(b.Used)", to: "|| s.blobs.Written(b).Before(b.Used)",
		test: "TestWhatSomebodyWroteToIsReadBeforeItIsBelieved",
	},
	{
		name: "what was whole once is whole", file: "check.go",
		from: "s.Now().Sub(b.Checked) >= trustFor ||", to: "s.Now().Sub(b.Checked) >= 1000*trustFor ||",
		test: "TestAFlippedBitIsMendedByUploadingAgain",
	},
	{
		name: "nothing is scrubbed", file: "maintain.go",
		from: "if s.ScrubBytes > 0 {", to: "if s.ScrubBytes < 0 {",
		test: "TestTheScrubberFindsWhatNobodyUses",
	},
	{
		name: "scrubbing takes all of the disk's time", file: "maintain.go",
		from: "time.Duration(float64(bytes)/float64(s.ScrubBytes)*float64(time.Second))", to: "time.Duration(bytes)",
		test: "TestTheScrubberFindsWhatNobodyUses",
	},
	{
		name: "what is damaged stays in the store", file: "check.go",
		from: "\ts.setAside(f, err)\n", to: "",
		test: "TestAFlippedBitIsFoundByADownload",
	},
	{
		name: "what is sent is not looked at", file: "send.go",
		from: "if at == f.sizeBytes && offset == 0 {", to: "if at == f.sizeBytes && offset < 0 {",
		test: "TestAFlippedBitIsFoundByADownload",
	},
})
