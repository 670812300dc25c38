//go:build lowwater_azure

package checkpoint

import _ "gocloud.dev/blob/azureblob" // for azblob:// addresses
