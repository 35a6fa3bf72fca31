"""The Daytona door: what the unmodified Daytona SDK asks for, put into the words of the cloud and back."""
