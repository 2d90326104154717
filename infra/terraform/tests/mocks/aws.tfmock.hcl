# An account that does not exist. What the provider itself checks the form of needs well-formed
# values; everything else is made up by Terraform.

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_caller_identity" {
  defaults = { account_id = "111122223333" }
}

mock_data "aws_region" {
  defaults = { id = "eu-central-1" }
}

mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/made" }
}

mock_resource "aws_sqs_queue" {
  defaults = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:made"
    id  = "https://sqs.eu-central-1.amazonaws.com/111122223333/made"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/made"
  }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::111122223333:role/made" }
}

mock_resource "aws_lambda_function" {
  defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:made" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-central-1:111122223333:made" }
}
