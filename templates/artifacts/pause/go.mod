module turnup.invalid/artifacts/pause

go 1.26.0
