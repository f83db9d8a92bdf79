"""The notebooks: executed for people who open them, and rendered as pages of the site."""
