module github.com/lowwater/lowwater

go 1.27
